import { setTimeout as delay } from 'node:timers/promises';
import { expect, inject, test } from 'vitest';
import { expectStoredOnce } from '../kit/clients.ts';
import { ownClickHouse } from '../kit/engines.ts';
import { startPipeline } from '../kit/pipeline.ts';

/** Longer than every timeout of the writer. The longest is a minute: ClickHouse's sessions, and Kafka's rebalances. */
const OUTAGE_MS = 80_000;

test('ClickHouse is away for longer than any timeout: nothing is refused, the writer waits, everything is stored once', async () => {
  await using clickhouse = await ownClickHouse();
  const kafkaBrokers = inject('kafkaBrokers');
  await using running = await startPipeline({ kafkaBrokers, clickhouseUrl: clickhouse.url, name: 'outage' });
  const { writer, 'ingest-api': ingest } = running.services;
  let total = 0;
  const submit = async () => {
    const events = Array.from({ length: 10 }, () => ({ event: 'e' }));
    const { status } = await running.submit({ foreignUserGroupId: 'g', foreignUserId: 'u', events });
    expect(status).toBe(202);
    total += events.length;
  };

  for (let count = 0; count < 20; count += 1) await submit();
  // While the writer is storing.
  await clickhouse.kill9();
  const end = Date.now() + OUTAGE_MS;
  while (Date.now() < end) {
    await submit();
    await delay(250);
  }

  const readiness = await fetch(`${writer.url}/readyz`);
  expect(readiness.status).toBe(503);
  expect(await readiness.json()).toMatchObject({ missing: expect.arrayContaining(['ClickHouse cannot be reached']) });
  expect((await fetch(`${ingest.url}/readyz`)).status).toBe(200);
  const query = await running.get('/events');
  expect(query.status).toBe(503);
  expect(query.headers.get('retry-after')).toMatch(/^\d+$/);

  await clickhouse.restart();
  await expectStoredOnce(running, clickhouse.url, total);
  // Fails when this process has ended, whatever runs in its place.
  await writer.ready();
});
