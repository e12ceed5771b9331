import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, test } from 'vitest';
import { ownClickHouse, ownKafka } from '../kit/engines.ts';
import { freeze } from '../kit/freeze.ts';
import { startPipeline } from '../kit/pipeline.ts';
import type { Service } from '../kit/service.ts';

const LAG = 'sluice_writer_lag_seconds';
const DISK = 'sluice_clickhouse_disk_free_bytes';
const ERASURES = 'sluice_erasure_pending_users';

/** Which of these metrics a writer exposes. */
async function exposed({ url }: Pick<Service, 'url'>): Promise<string[]> {
  const lines = (await (await fetch(`${url}/metrics`)).text()).split('\n');
  return [LAG, DISK, ERASURES].filter((name) => lines.some((line) => line.startsWith(name)));
}

test('while ClickHouse or Kafka does not respond, the metrics of the other one are there', async () => {
  await using clickhouse = await ownClickHouse();
  await using kafka = await ownKafka();
  await using running = await startPipeline({
    kafkaBrokers: kafka.brokers,
    clickhouseUrl: clickhouse.url,
    name: 'frozen',
    // A writer that Kafka does not respond to must not end itself meanwhile.
    env: { KAFKA_SESSION_TIMEOUT_MS: '60000' },
  });
  const { writer } = running.services;
  await eventually(() => exposed(writer)).toEqual([LAG, DISK, ERASURES]);

  const thawClickHouse = freeze(clickhouse.pid ?? -1);
  await eventually(() => exposed(writer)).toEqual([LAG]);
  thawClickHouse();
  await eventually(() => exposed(writer)).toEqual([LAG, DISK, ERASURES]);

  const thawKafka = freeze(kafka.pids[0] ?? -1);
  await eventually(() => exposed(writer)).toEqual([DISK, ERASURES]);
  thawKafka();
  await eventually(() => exposed(writer)).toEqual([LAG, DISK, ERASURES]);

  await clickhouse.kill9();
  await eventually(() => exposed(writer)).toEqual([LAG]);
  expect(writer.log()).toContain('the disks and tables of ClickHouse cannot be read; their metrics are absent');
});

test('the lag is there while no writer has an assignment', async () => {
  await using clickhouse = await ownClickHouse();
  const kafkaBrokers = inject('kafkaBrokers');
  await using running = await startPipeline({ kafkaBrokers, clickhouseUrl: clickhouse.url, name: 'unassigned' });
  await running.services.writer.stop();
  await clickhouse.kill9();
  expect((await running.submit({ foreignUserGroupId: 'g', events: [{ event: 'e' }] })).status).toBe(202);
  // Without ClickHouse it never joins the group.
  const writer = running.services.writer.again();
  running.services.writer = writer;
  const missing = async () => {
    const response = await fetch(`${writer.url}/readyz`).catch(() => undefined);
    return ((await response?.json()) as { missing: string[] } | undefined)?.missing;
  };
  await eventually(missing).toContain('no Kafka partitions are assigned yet');
  const lagging = async () => {
    const text = await (await fetch(`${writer.url}/metrics`)).text();
    return [...text.matchAll(/^sluice_writer_lag_messages\{.*\} (\S+)$/gm)].filter(([, value]) => value === '1').length;
  };
  await eventually(lagging).toBe(1);
});
