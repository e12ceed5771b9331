import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { createGunzip } from 'node:zlib';
import { expect, onTestFinished, test, vi } from 'vitest';
import { retryDelayMs, SendQueue } from './send-queue.ts';

const NOW = Date.UTC(2026, 2, 1);

function withRandom(value: number): void {
  const random = vi.spyOn(Math, 'random').mockReturnValue(value);
  onTestFinished(() => random.mockRestore());
}

test('the longest delay doubles up to 30 seconds, and any shorter one is as likely', () => {
  withRandom(1);
  const delays = [1, 2, 3, 4, 5, 6, 7, 100, 5_000].map((failures) => retryDelayMs(failures, null, NOW));
  expect(delays).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000, 30_000]);
  withRandom(0.25);
  expect(retryDelayMs(3, null, NOW)).toBe(1_000);
});

test.each([
  ['7', 7_000],
  ['0', 0],
  ['0.5', 500],
  [new Date(NOW + 9_000).toUTCString(), 9_000],
  [new Date(NOW - 9_000).toUTCString(), 0],
  ['86400', 300_000],
  ['Infinity', 300_000],
  [new Date(NOW + 86_400_000).toUTCString(), 300_000],
  ['soon', 0],
  ['-5', 0],
  ['', 0],
  [null, 0],
])('Retry-After %s means %i ms, besides the jitter', (retryAfter, ms) => {
  withRandom(0);
  expect(retryDelayMs(1, retryAfter, NOW)).toBe(ms);
  withRandom(0.5);
  expect(retryDelayMs(1, retryAfter, NOW)).toBe(ms + 500);
});

test('a full queue does not drop calls that are being compressed for a request', async () => {
  const delivered: number[] = [];
  const server = createServer(async (request, response) => {
    const { batch } = (await json(request.pipe(createGunzip()))) as { batch: { index: number }[] };
    delivered.push(...batch.map(({ index }) => index));
    response.end('{"success":true}');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  let whenCompressing: () => void = () => undefined;
  class Compression extends CompressionStream {
    constructor(format: ConstructorParameters<typeof CompressionStream>[0]) {
      super(format);
      whenCompressing();
      whenCompressing = () => undefined;
    }
  }
  vi.stubGlobal('CompressionStream', Compression);
  onTestFinished(() => void vi.unstubAllGlobals());

  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  let dropped = 0;
  const queue = new SendQueue(
    { url, key: 'key', batchCallsMax: 20, batchAgeMsMax: 0, queueCallsMax: 30 },
    (_code, _message, count) => {
      dropped += count;
    },
  );
  const add = (first: number, count: number) => {
    for (let index = first; index < first + count; index += 1) {
      queue.add({ id: String(index), text: JSON.stringify({ index, text: 'x'.repeat(100) }) });
    }
  };
  whenCompressing = () => add(20, 17);
  add(0, 20);
  expect(await queue.flush()).toBe(0);
  expect(dropped).toBe(7);
  // The oldest calls that wait are dropped.
  expect(delivered).toEqual([
    ...Array.from({ length: 20 }, (_, index) => index),
    ...Array.from({ length: 10 }, (_, index) => index + 27),
  ]);
});
