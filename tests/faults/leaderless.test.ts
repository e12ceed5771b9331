import { expect, inject, test, vi } from 'vitest';
import { ownKafka } from '../support/engines.ts';
import { startIngestAlone } from '../support/ingest-alone.ts';
import { readMetric } from '../support/metrics.ts';
import { startPipeline } from '../support/pipeline.ts';

vi.setConfig({ testTimeout: 180_000 });

const BODY = '{"foreignUserGroupId":"a","events":[{"event":"e"}]}';

test('while two of six partitions have no leader, the submissions of the others are accepted, and quickly', async () => {
  await using kafka = await ownKafka({ brokers: 3 });
  await using ingest = await startIngestAlone({
    kafkaBrokers: kafka.brokers,
    name: 'leaderless',
    env: { KAFKA_REPLICATION_FACTOR: '1', PRODUCE_TIMEOUT_MS: '5000' },
  });
  expect(await ingest.submit(BODY)).toBe(202);
  await kafka.kill9(2);
  for (const phase of ['the broker has just died', 'the partitions have no leader']) {
    const accepted: number[] = [];
    const statuses = await Promise.all(
      Array.from({ length: 120 }, async () => {
        const startedAt = performance.now();
        const status = await ingest.submit(BODY);
        if (status === 202) accepted.push(performance.now() - startedAt);
        return status;
      }),
    );
    expect(new Set(statuses), phase).toEqual(new Set([202, 503]));
    expect(accepted.length, phase).toBeGreaterThan(55);
    expect(accepted.toSorted((a, b) => a - b)[Math.floor(accepted.length / 2)], phase).toBeLessThan(2_000);
    const withoutLeader = () => readMetric(ingest.service, 'sluice_ingest_leaderless_partitions');
    await expect.poll(withoutLeader, { timeout: 60_000 }).toBe(4);
  }
  const response = await fetch(`${ingest.service.url}/readyz`);
  expect([response.status, await response.text()]).toMatchObject([200, expect.anything()]);
  await kafka.restart(2);
  await expect
    .poll(async () => await Promise.all(Array.from({ length: 30 }, () => ingest.submit(BODY))), { timeout: 60_000 })
    .toEqual(Array(30).fill(202));
});

test('while partitions have no leader, a writer that starts stores the others, and those once they have one', async () => {
  await using kafka = await ownKafka({ brokers: 3 });
  await using running = await startPipeline({
    kafkaBrokers: kafka.brokers,
    clickhouseUrl: inject('clickhouseUrl'),
    name: 'leaderlesswriter',
    env: { KAFKA_REPLICATION_FACTOR: '1', PRODUCE_TIMEOUT_MS: '5000' },
  });
  const accepted = async (count: number) => {
    const statuses = await Promise.all(Array.from({ length: count }, async () => (await running.submit(BODY)).status));
    return statuses.filter((status) => status === 202).length;
  };
  const before = await accepted(60);
  await running.services.writer.kill9();
  const unstored = await accepted(60);
  await kafka.kill9(2);
  const withoutLeader = () => readMetric(running.services['ingest-api'], 'sluice_ingest_leaderless_partitions');
  await expect.poll(withoutLeader, { timeout: 60_000 }).toBe(4);
  await running.restart('writer');
  const total = async () => (await running.get<{ total: number }>('/events?limit=0')).body.total;
  await expect.poll(total, { timeout: 60_000 }).toBeGreaterThan((before + unstored) / 2);
  const during = await accepted(60);
  await kafka.restart(2);
  await running.settled(before + unstored + during);
});
