import { expect, test } from 'vitest';
import { type PlacedReplica, shardsFinding } from './shards.ts';

const placed = (server: string, partitions: string, shard: string, replica = server): PlacedReplica => ({
  ...{ server, partitions, shard, replica },
});

test('each range is a shard of its own, whose replicas have different names', () => {
  const replicas = [placed('a1', '0-2', '1'), placed('a2', '0-2', '1'), placed('b1', '3-5', '2')];
  expect(shardsFinding(replicas)).toEqual({
    state: 'ok',
    found: 'shard 1 has the partitions 0-2, shard 2 has the partitions 3-5',
  });
  expect(shardsFinding([])).toMatchObject({ state: 'note' });
});

test('everything that is wrong with shards is named at once', () => {
  const replicas = [
    ...[placed('a1', '0-2', '1'), placed('a2', '0-2', '2')],
    ...[placed('b1', '3-5', '2', 'r'), placed('b2', '3-5', '2', 'r')],
  ];
  const { state, found } = shardsFinding(replicas);
  expect(state).toBe('wrong');
  expect(found.split('; ')).toEqual([
    'the servers of the partitions 0-2 have several shards (a1 1, a2 2)',
    'the servers of the shard 2 have several ranges (a2 0-2, b1 3-5, b2 3-5)',
    'b1 and b2 are both the replica r of the shard 2',
  ]);
});
