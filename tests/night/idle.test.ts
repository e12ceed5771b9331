import { setTimeout as delay } from 'node:timers/promises';
import { expectInTime } from '@sluice/shared/testing/until';
import { expect, inject, test } from 'vitest';
import { ownKafka } from '../kit/engines.ts';
import { readMetric } from '../kit/metrics.ts';
import { startPipeline } from '../kit/pipeline.ts';
import type { Service } from '../kit/service.ts';

/** Longer than Kafka keeps an idle connection in this test, and than the clients of ClickHouse and of HTTP do. */
const IDLE_MS = 10_000;

/**
 * A request on a connection that was closed unnoticed waits for a timeout: 5 s of an acknowledgement, 30 s of a query.
 * What takes less did not wait, also on a busy machine. In milliseconds.
 */
const SUBMITTED_MS_MAX = 4_500;
const VISIBLE_MS_MAX = 25_000;

/** The level of lines that nobody has to look at. */
const QUIET = 'info';

test('after idling past every keep-alive timeout, at next to no cost, the first submission waits for none', async () => {
  // Ten minutes by default.
  await using kafka = await ownKafka({ settings: { 'connections.max.idle.ms': 4_000 } });
  const env = { ERASURE_INTERVAL_MS: '10000' };
  const clickhouseUrl = inject('clickhouseUrl');
  await using running = await startPipeline({ kafkaBrokers: kafka.brokers, clickhouseUrl, name: 'idle', env });
  const submission = { foreignUserGroupId: 'g', events: [{ event: 'e' }] };
  expect((await running.submit(submission)).status).toBe(202);
  await running.settled(1);

  const services = Object.entries(running.services);
  const cpuSeconds = () => Promise.all(services.map(([, service]) => readMetric(service, 'process_cpu_seconds_total')));
  /** The complete lines. */
  const linesOf = (service: Service) => service.log().split('\n').slice(0, -1);
  const logged = services.map(([, service]) => linesOf(service).length);
  const before = await cpuSeconds();
  await delay(IDLE_MS);
  const after = await cpuSeconds();
  for (const [index, [name, service]] of services.entries()) {
    const share = ((after[index] ?? 0) - (before[index] ?? 0)) / (IDLE_MS / 1_000);
    expect(share, `CPU time of ${name}`).toBeLessThan(0.05);
    const lines = linesOf(service).slice(logged[index]);
    expect(lines.filter((line) => JSON.parse(line).level !== QUIET)).toEqual([]);
  }

  const startedAt = performance.now();
  expect((await running.submit(submission)).status).toBe(202);
  expectInTime('the submission', performance.now() - startedAt, SUBMITTED_MS_MAX);
  await running.settled(2);
  expectInTime('the event', performance.now() - startedAt, VISIBLE_MS_MAX);
});
