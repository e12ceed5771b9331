import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { TooLate } from '@sluice/shared/testing/until';
import { afterAll, afterEach, beforeAll, expect, inject, test } from 'vitest';
import { type IngestAlone, startIngestAlone } from '../kit/ingest-alone.ts';

const BODY = '{"foreignUserGroupId":"a","events":[{"event":"e"}]}';

let ingest: IngestAlone;
let sockets: Socket[] = [];

beforeAll(async () => {
  const workspaces = ['other', 'slow'];
  ingest = await startIngestAlone({ kafkaBrokers: inject('kafkaBrokers'), name: 'slow', workspaces });
});
afterAll(() => ingest?.[Symbol.asyncDispose]());
afterEach(() => {
  for (const socket of sockets) socket.destroy();
  sockets = [];
});

/** Sends the head of a request of the workspace `slow`, and returns its socket. */
async function begin(url: string, header: string): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  sockets.push(socket);
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  const head = ['POST /v1/public/userGroups HTTP/1.1', 'Host: a', 'Authorization: Bearer slow', header];
  socket.write(`${[...head, 'Content-Type: application/json'].join('\r\n')}\r\n\r\n`);
  return socket;
}

test.each([
  ['announced and never sent', 'Content-Length: 4000000', undefined],
  ['sent a byte at a time', 'Content-Length: 4000000', ' '],
  ['sent in chunks of a byte', 'Transfer-Encoding: chunked', '1\r\n \r\n'],
])(
  '200 bodies of one key that are %s do not keep another workspace out, and are given up',
  async (_, header, piece) => {
    const { url } = ingest.service;
    const responses: string[] = [];
    const opened = await Promise.all(
      Array.from({ length: 200 }, async () => {
        const socket = await begin(url, header);
        socket.setEncoding('utf8').on('data', (text: string) => responses.push(text));
        return socket;
      }),
    );
    const startedAt = performance.now();
    while (responses.length < 200 && performance.now() - startedAt < 60_000) {
      if (piece !== undefined) for (const socket of opened) if (socket.writable) socket.write(piece);
      expect(await ingest.submit(BODY)).toBe(202);
      await delay(100);
    }
    if (responses.length < 200) throw new TooLate(`only ${responses.length} of 200 bodies were given up`);
    // Requests that find no memory are refused at once; the others get their time.
    for (const response of responses) expect(response).toMatch(/^HTTP\/1\.1 (408|503) /);
    expect(responses.filter((response) => response.includes('body_too_slow')).length).toBeGreaterThan(100);
  },
);
