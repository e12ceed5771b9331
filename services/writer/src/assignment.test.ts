import type { Batch } from 'kafkajs';
import { expect, test } from 'vitest';
import { type Assignment, createAssignment } from './assignment.ts';

const last = { fingerprint: 'f', leaderEpoch: 3 };

/** An assignment of generation 7, of which one partition is open at offset 40. */
function assigned(): Assignment {
  const assignment = createAssignment({
    duration: 0,
    groupId: 'g',
    isLeader: true,
    leaderId: 'm',
    memberId: 'm',
    groupProtocol: 'p',
    generationId: 7,
    memberAssignment: { t: [0, 1] },
  });
  assignment.open('t', 0, { nextOffset: 40n, last });
  return assignment;
}

function fetched(change: Partial<Batch> = {}, { offset = 40, leaderEpoch = 3 } = {}): Batch {
  const messages = [offset, offset + 1].map((at) => ({
    key: null,
    value: Buffer.from('{}'),
    timestamp: '0',
    attributes: 0,
    offset: String(at),
    headers: {},
    batchContext: { partitionLeaderEpoch: leaderEpoch },
  }));
  return { topic: 't', partition: 0, generationId: 7, fetchedOffset: '40', messages, ...change } as Batch;
}

test('what comes next in an open partition is taken, and moves it on', () => {
  const assignment = assigned();
  expect(assignment.judge(fetched())).toEqual({ kind: 'next' });
  assignment.advance(fetched());
  expect(assignment.judge(fetched())).toMatchObject({ kind: 'elsewhere', place: { nextOffset: 42n } });
  expect(assignment.judge(fetched({ fetchedOffset: '42' }, { offset: 42 }))).toEqual({ kind: 'next' });
});

test('what was fetched in another generation is late, though it would be next', () => {
  expect(assigned().judge(fetched({ generationId: 6 }))).toEqual({ kind: 'late' });
});

test('what was fetched of a partition that is not open is late, though it is of this generation', () => {
  const assignment = assigned();
  expect(assignment.judge(fetched({ partition: 1 }))).toEqual({ kind: 'late' });
  expect(assignment.judge(fetched({ partition: 2 }))).toEqual({ kind: 'late' });
  assignment.close('t', 0);
  expect(assignment.judge(fetched())).toEqual({ kind: 'late' });
});

test('messages that are missing before a batch are noticed', () => {
  expect(assigned().judge(fetched({}, { offset: 43 }))).toMatchObject({ kind: 'gap', first: 43n });
});

test('a batch of a later leader is told apart, unless nothing was stored before it', () => {
  const assignment = assigned();
  expect(assignment.judge(fetched({}, { leaderEpoch: 4 }))).toMatchObject({ kind: 'new leader', place: { last } });
  assignment.open('t', 0, { nextOffset: 40n, last: undefined });
  expect(assignment.judge(fetched({}, { leaderEpoch: 4 }))).toEqual({ kind: 'next' });
});

test('a batch that could not be committed is read again, compared with the same last record', () => {
  const assignment = assigned();
  assignment.advance(fetched());
  assignment.goBack(fetched());
  expect(assignment.judge(fetched())).toEqual({ kind: 'next' });
  expect(assignment.judge(fetched({}, { leaderEpoch: 4 }))).toMatchObject({ kind: 'new leader', place: { last } });
});
