import { expect, test } from 'vitest';
import { decodePosition, endOfBlock } from '../stream/stream.ts';
import { numberedSince } from './webhook-replay.ts';

const origin = { server: 'a1+b1', database: 'aaaaaaaabbbbbbbb', throughMs: 0 };

test('of replicas a replay goes back to a time by the numbers of records, and no further than these are kept', () => {
  const nowMs = Date.now();
  const position = new Map([
    [1, endOfBlock(nowMs)],
    [2, endOfBlock(nowMs - 3_600_000)],
  ]);
  const now = { position, sentAtMs: nowMs, origin };
  const since = nowMs - 60_000;
  expect(decodePosition(numberedSince(now, since))?.position).toEqual(
    new Map([
      [1, endOfBlock(since - 5_000)],
      // Nothing came there since.
      [2, endOfBlock(nowMs - 3_600_000)],
    ]),
  );
  expect(() => numberedSince(now, nowMs - 8 * 86_400_000)).toThrow('events of the last 7 days');
});
