import { expect, test } from 'vitest';
import { createMessageParser, RecentlySeen } from './live-tail.ts';

test('a key is new once, and again when many others have come since', () => {
  const seen = new RecentlySeen(3);
  const found = ['a', 'b', 'a', 'c', 'b', 'd', 'a', 'd'].map((key) => seen.add(key));
  expect(found).toEqual([true, true, false, true, false, true, true, false]);
});

const STREAM =
  'retry: 9\nid: 0\n\n: heartbeat\n\nid: 1\ndata: {"a":1}\n\nid:2\r\ndata:{"b":\r\ndata: 2}\r\n\r\nevent: other\n\ndata: 3\n\nevent: problem\ndata: 4\n\ndata: 5';

const MESSAGES = [
  { id: '0', name: 'message', data: undefined },
  { id: '1', name: 'message', data: '{"a":1}' },
  { id: '2', name: 'message', data: '{"b":\n2}' },
  { id: '2', name: 'message', data: '3' },
  { id: '2', name: 'problem', data: '4' },
];

test.each([1, 2, 7, STREAM.length])('a stream that arrives %i characters at a time has its whole messages', (size) => {
  const parse = createMessageParser();
  const pieces = STREAM.match(new RegExp(`.{1,${size}}`, 'gs')) ?? [];
  expect(pieces.flatMap(parse)).toEqual(MESSAGES);
});
