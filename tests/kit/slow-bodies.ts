import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { TooLate } from '@sluice/shared/testing/until';
import { expect } from 'vitest';
import { startIngestAlone } from './ingest-alone.ts';

const BODY = '{"foreignUserGroupId":"a","events":[{"event":"e"}]}';

export interface SlowBodies {
  readonly kafkaBrokers: readonly string[];
  /** Names ingest-api's topics. */
  readonly name: string;
  /** The header that says how long a body is. */
  readonly header: string;
  /** What is sent of each body ten times a second. Default: nothing. */
  readonly piece?: string;
}

/** Sends the head of a request of the workspace `slow`, and returns its socket. */
async function begin(url: string, header: string): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  const head = ['POST /v1/public/userGroups HTTP/1.1', 'Host: a', 'Authorization: Bearer slow', header];
  socket.write(`${[...head, 'Content-Type: application/json'].join('\r\n')}\r\n\r\n`);
  return socket;
}

/** Sends 200 bodies of one key slowly: they are given up, and submissions of another workspace are accepted all the time. */
export async function expectToGiveUp({ kafkaBrokers, name, header, piece }: SlowBodies): Promise<void> {
  await using ingest = await startIngestAlone({ kafkaBrokers, name, workspaces: ['other', 'slow'] });
  using sockets = new DisposableStack();
  const responses: string[] = [];
  const opened = await Promise.all(
    Array.from({ length: 200 }, async () => {
      const socket = await begin(ingest.service.url, header);
      sockets.defer(() => socket.destroy());
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
}
