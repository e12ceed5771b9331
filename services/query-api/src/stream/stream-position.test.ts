import { expect, test } from 'vitest';
import { tokenOf } from '../http/cursor.ts';
import { decodePosition, encodePosition, endOfBlock } from './stream-position.ts';

const UUID = '0190a0a0-0000-7000-8000-00000000000a';
const IN_BLOCK = new Map([[0, { block: 7, timestampMs: -5, uuid: UUID }]]);
const AT_END = new Map([[0, endOfBlock(7)]]);
const ORIGIN = { server: 'a1', database: '0000000a', throughMs: Date.UTC(2026, 2, 1) };

test('ids without a file of servers are what they always were', () => {
  expect(encodePosition(AT_END, 5_999)).toBe(tokenOf([5, [0, 7]]));
  expect(encodePosition(IN_BLOCK, 5_999)).toBe(tokenOf([5, [0, 7, -5, UUID]]));
  const ofShards = new Map([...AT_END, [1, endOfBlock(2)]]);
  expect(encodePosition(ofShards, 5_999)).toBe(tokenOf([5, [0, 7], [1, 2]]));
  for (const position of [AT_END, IN_BLOCK, ofShards]) {
    const expected = { position, sentAtMs: 5_000, origin: undefined };
    expect(decodePosition(encodePosition(position, 5_999))).toEqual(expected);
  }
});

test('with a file, an id says whose position it is, and until when everything was sent', () => {
  for (const position of [AT_END, IN_BLOCK]) {
    const id = encodePosition(position, 5_999, ORIGIN);
    expect(decodePosition(id)).toEqual({ position, sentAtMs: 5_000, origin: ORIGIN });
  }
});

test.each([
  ['a name with other characters', [5, ['a 1', '0000000a', 1, 7]]],
  ['a long name', [5, ['a'.repeat(33), '0000000a', 1, 7]]],
  ['no database', [5, ['a1', 1, 7]]],
  ['a database of another form', [5, ['a1', '0000000A', 1, 7]]],
  ['a time that ClickHouse does not have', [5, ['a1', '0000000a', Number.MAX_SAFE_INTEGER, 7]]],
  ['a negative time', [5, ['a1', '0000000a', -1, 7]]],
  ['a time with a fraction', [5, ['a1', '0000000a', 1.5, 7]]],
  ['a block that is none', [5, ['a1', '0000000a', 1, -7]]],
  ['no uuid', [5, ['a1', '0000000a', 1, 7, 1]]],
  ['two servers', [5, ['a1', '0000000a', 1, 7], ['a2', '0000000a', 1, 7]]],
  ['a server and a number', [5, ['a1', '0000000a', 1, 7], [1, 7]]],
  ['nothing', []],
])('an id with %s is none', (_, content) => {
  expect(decodePosition(tokenOf(content))).toBeUndefined();
});
