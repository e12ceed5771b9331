import { expect, onTestFinished, test } from 'vitest';
import type { ClientError } from '../../packages/client/src/calls.ts';
import { createClient } from '../../packages/client/src/client.ts';
import { startHttpProxy } from '../kit/http-proxy.ts';
import type { EventPage } from '../kit/records.ts';
import { takeTenant } from '../kit/shared-pipeline.ts';

test('a request without a response fails after 20 seconds, and its calls are sent again', async () => {
  const pipeline = await takeTenant('clienttimeout');
  const stallFirst = (_: unknown, index: number) => (index === 0 ? 'stall' : 'forward');
  await using proxy = await startHttpProxy(pipeline.services['ingest-api'].url, stallFirst);
  const errors: ClientError[] = [];
  const client = createClient({ url: proxy.url, key: pipeline.key, onError: (error) => errors.push(error) });
  onTestFinished(async () => void (await client.close({ timeoutMs: 0 })));
  const startedAt = performance.now();
  for (const index of [0, 1]) client.track('timeout', { index }, { userId: 'ada' });
  expect(await client.flush({ timeoutMs: 120_000 })).toBe(0);
  expect((proxy.requests[0]?.endedAt ?? 0) - startedAt).toBeGreaterThan(19_990);
  expect(errors).toMatchObject([{ code: 'request_failed', message: '0 timeout' }]);
  await pipeline.drained();
  expect((await pipeline.get<EventPage>('/events?event=timeout')).body.total).toBe(2);
});
