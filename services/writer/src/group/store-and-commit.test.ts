import { setImmediate as nextTurnOfEventLoop } from 'node:timers/promises';
import type { EachBatchPayload } from 'kafkajs';
import { expect, test } from 'vitest';
import { createTestAssignment } from '../testing/assignment.ts';
import { OffsetCommits } from './offset-commits.ts';
import { storeAndCommit } from './store-and-commit.ts';

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
