import { expect, test, vi } from 'vitest';
import { ownKafka } from '../support/engines.ts';
import { startIngestAlone } from '../support/ingest-alone.ts';
import { readMetric } from '../support/metrics.ts';

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
    const withoutLeader = () => readMetric(ingest.service, 'sluice_ingest_partitions_without_leader');
    await expect.poll(withoutLeader, { timeout: 60_000 }).toBe(4);
  }
  const response = await fetch(`${ingest.service.url}/readyz`);
  expect([response.status, await response.text()]).toMatchObject([200, expect.anything()]);
  await kafka.restart(2);
  await expect
    .poll(async () => await Promise.all(Array.from({ length: 30 }, () => ingest.submit(BODY))), { timeout: 60_000 })
    .toEqual(Array(30).fill(202));
});
