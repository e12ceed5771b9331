import { createLogger } from '@sluice/shared/log';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, onTestFinished, test } from 'vitest';
import { StoringProgress } from './storing-progress.ts';
import { batchOf, createTestStore, eventRow, NOON } from './testing/store.ts';

test('the owner records until when everything is stored, and in which blocks', async () => {
  const db = await createTestStore(inject('clickhouseUrl'));
  onTestFinished(() => db.close());
  const recorded = () =>
    db.read<{ through: string; block: number }>(
      'SELECT toString(through) AS through, newest_block AS block FROM storing_progress ORDER BY recorded_at DESC LIMIT 1',
    );
  const newest = async () =>
    (await db.read<{ block: number }>('SELECT max(_block_number) AS block FROM events'))[0]?.block;
  let throughMs: number | undefined;
  const progress = new StoringProgress({
    client: db.writerClient,
    storedThrough: async () => throughMs,
    logger: createLogger('test', 'silent'),
  });
  onTestFinished(() => progress.stop());
  await progress.start();
  progress.setOwner(true);
  throughMs = NOON;
  await eventually(recorded).toEqual([{ through: '2026-03-01 12:00:00.000', block: 0 }]);
  await db.store(batchOf([eventRow()]));
  await db.store(batchOf([eventRow()]));
  throughMs = NOON + 1;
  await eventually(recorded).toEqual([{ through: '2026-03-01 12:00:00.001', block: await newest() }]);
  // What is not known is not recorded, and nothing is by others.
  throughMs = undefined;
  const [before] = await recorded();
  progress.setOwner(false);
  throughMs = NOON + 2;
  await progress.stop();
  expect(await recorded()).toEqual([before]);
});
