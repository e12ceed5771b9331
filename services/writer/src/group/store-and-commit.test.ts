import { setImmediate as nextTurnOfEventLoop } from 'node:timers/promises';
import { createTestAssignment } from '@sluice/storage/testing/assignment';
import type { EachBatchPayload, OffsetsByTopicPartition } from 'kafkajs';
import { expect, test } from 'vitest';
import { OffsetCommits, storeAndCommit } from './store-and-commit.ts';

test('a member that the group has removed waits until its rows are no longer being stored, and commits nothing', async () => {
  const removed = Object.assign(new Error('the group does not know this member'), { type: 'UNKNOWN_MEMBER_ID' });
  const [storing, beating] = [Promise.withResolvers<boolean>(), Promise.withResolvers<void>()];
  const assignment = createTestAssignment(1);
  const done: string[] = [];
  const payload = {
    batch: { topic: 't', partition: 0, lastOffset: () => '9' },
    async heartbeat() {
      beating.resolve();
      throw removed;
    },
    resolveOffset: () => void done.push('resolved'),
    commitOffsetsIfNecessary: async () => void done.push('committed'),
  } as unknown as EachBatchPayload;
  const ended = storeAndCommit({
    payload,
    assignment,
    commits: new OffsetCommits(assignment, () => 'database'),
    store: () => storing.promise,
    heartbeatMs: 1,
    onExpelled: () => void done.push('expelled'),
  }).catch((error: unknown) => {
    done.push('ended');
    return error;
  });
  await beating.promise;
  // Whatever does not wait for the rows has ended after these turns.
  for (let turn = 0; turn < 20; turn += 1) await nextTurnOfEventLoop();
  done.push('stored');
  storing.resolve(true);
  expect(await ended).toBe(removed);
  expect(done).toEqual(['expelled', 'stored', 'ended']);
});

function batch(topic: string, partition: number, last: number): EachBatchPayload['batch'] {
  return { topic, partition, lastOffset: () => String(last) } as EachBatchPayload['batch'];
}

function recorder(): { sent: OffsetsByTopicPartition[]; send: (offsets: OffsetsByTopicPartition) => Promise<void> } {
  const sent: OffsetsByTopicPartition[] = [];
  return { sent, send: async (offsets) => void sent.push(offsets) };
}

test('what is committed in one turn of the event loop goes to Kafka in one request', async () => {
  const commits = new OffsetCommits(createTestAssignment(1), () => 'database');
  const { sent, send } = recorder();
  const together = [batch('events', 0, 9), batch('entities', 0, 4), batch('events', 1, 7)];
  await Promise.all(together.map((stored) => commits.commit(stored, send)));
  await commits.commit(batch('events', 0, 12), send);
  expect(sent).toMatchObject([
    {
      topics: [
        {
          topic: 'events',
          partitions: [
            { partition: 0, offset: '10', metadata: 'database' },
            { partition: 1, offset: '8', metadata: 'database' },
          ],
        },
        { topic: 'entities', partitions: [{ partition: 0, offset: '5' }] },
      ],
    },
    { topics: [{ topic: 'events', partitions: [{ partition: 0, offset: '13' }] }] },
  ]);
});

test('a commit that fails rejects for every batch in it, and for none after it', async () => {
  const commits = new OffsetCommits(createTestAssignment(1), () => 'database');
  const fail = () => Promise.reject(new Error('not the coordinator'));
  const results = await Promise.allSettled([
    commits.commit(batch('t', 0, 1), fail),
    commits.commit(batch('t', 1, 1), fail),
  ]);
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  const { sent, send } = recorder();
  await commits.commit(batch('t', 0, 1), send);
  expect(sent).toHaveLength(1);
});

test('nothing is committed once the assignment is over', async () => {
  const assignment = createTestAssignment(1);
  const commits = new OffsetCommits(assignment, () => 'database');
  const { sent, send } = recorder();
  const committed = commits.commit(batch('t', 0, 1), send);
  assignment.end('it is over');
  await committed;
  expect(sent).toEqual([]);
  expect(assignment.committed).toEqual([]);
});
