import { expect, test } from 'vitest';
import { createMessageParser } from './event-source-parser.ts';

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
