import { ReplicaBehind } from '@sluice/shared/clickhouse/migrate-replicas';
import { expect, test } from 'vitest';
import { untilLevel } from './replicas.ts';

test('work is repeated while a replica is behind, and no longer', async () => {
  const failures: Error[] = [
    new ReplicaBehind('columns'),
    ...['CANNOT_ASSIGN_ALTER', 'METADATA_MISMATCH', 'INCOMPATIBLE_COLUMNS'].map((type) =>
      Object.assign(new Error('x'), { type }),
    ),
  ];
  const work = async () => {
    const failure = failures.shift();
    if (failure) throw failure;
  };
  await untilLevel(work, { pauseMs: 0 });
  expect(failures).toEqual([]);
  failures.push(new Error('no right'), new ReplicaBehind('never reached'));
  await expect(untilLevel(work, { pauseMs: 0 })).rejects.toThrow('no right');
  expect(failures).toHaveLength(1);
});
