import type { EachBatchPayload, OffsetsByTopicPartition } from 'kafkajs';
import { expect, test } from 'vitest';
import { createTestAssignment } from '../testing/assignment.ts';
import { OffsetCommits } from './offset-commits.ts';

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
