import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'vitest';
import { expectStoredOnce } from './clients.ts';
import { ownClickHouse } from './engines.ts';
import { startPipeline } from './pipeline.ts';
import type { Service } from './service.ts';

export interface OutageOptions {
  readonly kafkaBrokers: readonly string[];
  /** The name of the pipeline. */
  readonly name: string;
  /** Whether the outage has lasted long enough; asked four times a second. */
  readonly isOver: (writer: Service) => Promise<boolean>;
}

/**
 * Kills the only ClickHouse while the writer is storing, and starts it again. Meanwhile nothing is refused, and queries are
 * told to come again; afterwards everything is stored once, by the same writer.
 */
export async function surviveOutage({ kafkaBrokers, name, isOver }: OutageOptions): Promise<void> {
  await using clickhouse = await ownClickHouse();
  await using running = await startPipeline({ kafkaBrokers, clickhouseUrl: clickhouse.url, name });
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
  do {
    await submit();
    await delay(250);
  } while (!(await isOver(writer)));

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
}
