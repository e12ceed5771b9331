import { describe, expect, test } from 'vitest';
import { judgeOffsets } from './offset-guard.ts';
import type { Place } from './place.ts';

const last = { fingerprint: 'f', leaderEpoch: 3 };
const bounds = { low: 10n, high: 20n };

function judge(committed: bigint, position?: Place) {
  return judgeOffsets({ name: 't/0', bounds, committed, position });
}
const stored = (nextOffset: bigint): Place => ({ nextOffset, last });
const chosen = (nextOffset: bigint): Place => ({ nextOffset, last: undefined });
const startsAt = (nextOffset: bigint) => ({ kind: 'sound', place: { nextOffset } });
const fault = (reason: string) => ({ kind: 'fault', fault: { reason } });

describe('a partition goes on', () => {
  test.each<[string, bigint, Place | undefined, bigint]>([
    ['at the oldest message when nothing is known', -1n, undefined, 10n],
    ['at what was committed', 15n, undefined, 15n],
    ['at what is stored when Kafka has forgotten the group', -1n, stored(14n), 14n],
    ['at what is stored when ClickHouse is an older copy', 18n, stored(14n), 14n],
    ['at what was committed when more is stored', 12n, stored(14n), 12n],
    ['at the oldest message when what is gone was stored', 5n, stored(14n), 10n],
    ['where retention has removed exactly what was stored', 10n, stored(10n), 10n],
    ['at the end', 20n, stored(20n), 20n],
    ['where an operator chose, behind what was committed', 11n, chosen(17n), 17n],
    ['where an operator chose, before what was committed', 17n, chosen(11n), 11n],
  ])('%s', (_, committed, position, expected) => {
    expect(judge(committed, position)).toMatchObject(startsAt(expected));
  });
});

describe('a partition is at fault when', () => {
  test.each<[string, bigint, Place | undefined, string]>([
    ['the committed offset is gone', 9n, undefined, 'messages are gone'],
    ['what is to be stored again is gone', 15n, stored(9n), 'messages are gone'],
    ['what an operator chose is gone', 15n, chosen(9n), 'messages are gone'],
    ['the log ends before the committed offset', 21n, undefined, 'the log was cut off'],
    ['the log ends before what is stored', 15n, stored(21n), 'the log was cut off'],
    ['the log ends before what an operator chose', 15n, chosen(21n), 'the log was cut off'],
  ])('%s', (_, committed, position, reason) => {
    expect(judge(committed, position)).toMatchObject(fault(reason));
  });
});

test('a fault says which offsets it concerns', () => {
  expect(judge(4n)).toMatchObject({
    fault: { firstOffset: 4n, lastOffset: 9n, detail: expect.stringMatching(/^6 messages of t.0 are gone/) },
  });
  expect(judge(25n)).toMatchObject({ fault: { firstOffset: 20n, lastOffset: 24n } });
});
