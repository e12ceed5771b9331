import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { findFreePorts } from '@sluice/local-stack/ports';
import { expect, inject, onTestFinished, test } from 'vitest';
import { startPipeline } from '../kit/pipeline.ts';
import { type Service, startService } from '../kit/service.ts';

// Times from the environment, seen where they act. Their arithmetic has tests of its own: batch-pace.test.ts, lifecycle.test.ts.

/** Much longer than by default, so that the rows of a light load can be seen to wait. */
const BATCH_AGE_MS = 6_000;

/** Nothing that has a request under way stops in it. */
const SHUTDOWN_TIMEOUT_MS = 1;

/** Sends a request whose body does not end. Resolves when the service has begun to read it. */
async function holdRequest({ url }: Service, path: string, key: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  socket.on('error', () => undefined);
  onTestFinished(() => void socket.destroy());
  const headers = ['content-type: application/json', 'content-length: 99', `authorization: Bearer ${key}`];
  socket.write(
    [`POST ${path} HTTP/1.1`, `host: ${hostname}`, ...headers, 'expect: 100-continue', '', '{'].join('\r\n'),
  );
  expect(String(await once(socket, 'data'))).toContain('100 Continue');
  return socket;
}

/** Expects that a service with a request under way gives up after its time. */
async function expectGivesUp(service: Service, path: string, key: string): Promise<void> {
  await holdRequest(service, path, key);
  expect([path, await service.stop()]).toEqual([path, 1]);
  expect(service.log()).toContain(`"shutdownTimeoutMs":${SHUTDOWN_TIMEOUT_MS},`);
}

test('BATCH_AGE_MS is how old rows are when they are stored, and after SHUTDOWN_TIMEOUT_MS each service gives up stopping', async () => {
  await using pipeline = await startPipeline({
    ...{ kafkaBrokers: inject('kafkaBrokers'), clickhouseUrl: inject('clickhouseUrl'), name: 'timing' },
    env: { SHUTDOWN_TIMEOUT_MS: String(SHUTDOWN_TIMEOUT_MS) },
    envOf: { writer: { BATCH_AGE_MS: String(BATCH_AGE_MS) } },
  });
  const submit = async () => {
    const submission = { foreignUserGroupId: 'g', events: [{ event: 'e' }] };
    expect((await pipeline.submit(submission)).status).toBe(202);
  };
  // The first row after quiet is stored as soon as it comes, and the next batch begins half of the age later at least.
  const firstAt = performance.now();
  await submit();
  await pipeline.settled(1);
  await submit();
  await pipeline.settled(2);
  expect(performance.now() - firstAt).toBeGreaterThanOrEqual(BATCH_AGE_MS / 2);

  const [port = 0] = await findFreePorts(1);
  const { services, key } = pipeline;
  const urls = { INGEST_URL: services['ingest-api'].url, QUERY_URL: services['query-api'].url };
  const trench = startService('trench-api', port, { ...urls, SHUTDOWN_TIMEOUT_MS: String(SHUTDOWN_TIMEOUT_MS) });
  onTestFinished(() => trench.kill9());
  await trench.ready();
  await expectGivesUp(trench, '/events', key);
  await expectGivesUp(services['ingest-api'], '/v1/public/userGroups', key);
  await expectGivesUp(services['query-api'], '/queries', key);
  await expectGivesUp(services.writer, '/dead-letters/x/replay', key);
});
