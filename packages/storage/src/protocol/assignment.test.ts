import type { Batch } from 'kafkajs';
import { expect, test } from 'vitest';
import { createTestAssignment } from '../testing/assignment.ts';
import type { Assignment } from './assignment.ts';

const last = { fingerprint: 'f', leaderEpoch: 3 };

/** An assignment of generation 7, of which one partition is open at offset 40. */
function assigned(): Assignment {
  const assignment = createTestAssignment(7, [0, 1]);
  assignment.open({ topic: 't', partition: 0 }, { nextOffset: 40n, last });
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
  return { topic: 't', partition: 0, fetchedOffset: '40', messages, ...change } as Batch;
}

test('the next batch of an open partition fits, and moves the position', () => {
  const assignment = assigned();
  expect(assignment.classify(fetched())).toEqual({ kind: 'next' });
  assignment.advance(fetched());
  expect(assignment.classify(fetched())).toMatchObject({ kind: 'elsewhere', position: { nextOffset: 42n } });
  expect(assignment.classify(fetched({ fetchedOffset: '42' }, { offset: 42 }))).toEqual({ kind: 'next' });
});

test('a batch of a partition that is not open is late', () => {
  const assignment = assigned();
  expect(assignment.classify(fetched({ partition: 1 }))).toEqual({ kind: 'late' });
  expect(assignment.classify(fetched({ partition: 2 }))).toEqual({ kind: 'late' });
  assignment.close({ topic: 't', partition: 0 });
  expect(assignment.classify(fetched())).toEqual({ kind: 'late' });
});

test('missing messages before a batch are a gap', () => {
  expect(assigned().classify(fetched({}, { offset: 43 }))).toMatchObject({ kind: 'gap', first: 43n });
});

test('a batch of a later leader is recognised, unless nothing was stored before it', () => {
  const assignment = assigned();
  expect(assignment.classify(fetched({}, { leaderEpoch: 4 }))).toMatchObject({
    kind: 'new leader',
    position: { last },
  });
  assignment.open({ topic: 't', partition: 0 }, { nextOffset: 40n, last: undefined });
  expect(assignment.classify(fetched({}, { leaderEpoch: 4 }))).toEqual({ kind: 'next' });
});

test('a batch that could not be committed is fetched again, and compared with the same last record', () => {
  const assignment = assigned();
  assignment.advance(fetched());
  assignment.goBack(fetched());
  expect(assignment.classify(fetched())).toEqual({ kind: 'next' });
  expect(assignment.classify(fetched({}, { leaderEpoch: 4 }))).toMatchObject({
    kind: 'new leader',
    position: { last },
  });
});
