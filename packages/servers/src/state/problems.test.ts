import { parseRange } from '@sluice/shared/servers/partition-range';
import { expect, test } from 'vitest';
import type { DatabaseState } from './database-state.ts';
import { replicaProblems } from './problems.ts';

function server(name: string, partitions: string, id: string | undefined) {
  const identity = id === undefined ? undefined : { id };
  return { name, server: { name, partitions: parseRange(partitions) }, state: { identity } as DatabaseState };
}

test('two ranges in one database are seen, also where the first server of a range has said nothing yet', () => {
  const empty = server('a1', '0-23', undefined);
  const [a2, b1, b2] = [server('a2', '0-23', 'x'), server('b1', '24-47', 'x'), server('b2', '24-47', 'x')];
  const problem = 'a2 and b1 are one database: check the addresses.';
  expect(replicaProblems([empty, a2, b1, b2])).toEqual([problem]);
  expect(replicaProblems([empty, a2, server('b1', '24-47', undefined), b2])).toEqual([
    'a2 and b2 are one database: check the addresses.',
  ]);
  expect(replicaProblems([empty, a2, server('b1', '24-47', 'y'), server('b2', '24-47', 'y')])).toEqual([]);
});

test('servers of one range with several databases are no replicas', () => {
  expect(replicaProblems([server('a1', '0-23', 'x'), server('a2', '0-23', 'y')])).toEqual([
    'a1 and a2 are no replicas of each other: check the macro shard.',
  ]);
});
