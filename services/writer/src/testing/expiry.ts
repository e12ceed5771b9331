import { randomUUID } from 'node:crypto';
import { createLogger } from '@sluice/shared/base/log';
import { createDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { ALL_OTHERS, keptFromMs } from '@sluice/shared/config/retention-days';
import type { EventRow } from '@sluice/shared/rows';
import { recordRetention } from '@sluice/storage/clickhouse/retention-settings';
import { afterAll, beforeAll, beforeEach, inject, onTestFinished } from 'vitest';
import { ExpiredEvents, type ExpiryConfig } from '../erasure/expired-events.ts';
import { batchOf, createTestStore, eventRow, type TestStore } from './store.ts';

/** The store of a file of tests. */
export let db: TestStore;

/** Each test of the file begins without events and settings. */
export function prepareExpiry(): void {
  beforeAll(async () => {
    db = await createTestStore(inject('clickhouseUrl'), createDatabase);
    // ClickHouse would otherwise remove empty parts after half a minute. Only a table that is attached again does so at once.
    const atOnce = 'cleanup_delay_period = 1, max_cleanup_delay_period = 1, cleanup_delay_period_random_add = 0';
    await db.client.command({ query: `ALTER TABLE events MODIFY SETTING ${atOnce}` });
    for (const action of ['DETACH', 'ATTACH']) await db.client.command({ query: `${action} TABLE events` });
  });
  afterAll(() => db.close());

  beforeEach(async () => {
    daysForAll = undefined;
    for (const table of ['events', 'retention']) await db.client.command({ query: `TRUNCATE TABLE ${table}` });
  });
}

/** EVENTS_RETENTION_DAYS of all writers. */
let daysForAll: number | undefined;

export async function keepForAll(days: number): Promise<void> {
  daysForAll = days;
  await recordRetention(db.client, ALL_OTHERS, days);
}

const failures = { inc: () => undefined };

export function expiryWith(config: Partial<ExpiryConfig>, client = db.client): ExpiredEvents {
  const often = { ERASURE_INTERVAL_MS: 50, RETENTION_INTERVAL_MS: 100, RETENTION_DELAY_MS: 0 };
  const expiry = new ExpiredEvents(
    { ...often, EVENTS_RETENTION_DAYS: daysForAll, ...config },
    { client, writerId: randomUUID(), logger: createLogger('test', 'silent'), failures },
  );
  onTestFinished(() => expiry.stop());
  expiry.setOwner(true);
  return expiry;
}

/** Erases what is to be erased by the settings as they are. */
export async function erase(delayMs = 0): Promise<void> {
  await expiryWith({ RETENTION_DELAY_MS: delayMs }).takeRound();
}

/** An event that arrived at once, unless `row` says when. */
export function eventAt(timestamp: number, row: Partial<EventRow> = {}): EventRow {
  return eventRow({ timestamp, ...row });
}

/** The first millisecond of the month that lies some months before the one of which the first day is kept. */
export function monthBefore(days: number, months: number): number {
  const kept = new Date(keptFromMs(days, Date.now()));
  return Date.UTC(kept.getUTCFullYear(), kept.getUTCMonth() - months);
}

export const stored = async () =>
  (await db.read<{ event: string }>('SELECT event FROM events ORDER BY event')).map(({ event }) => event);

/** Stores each event in an insert of its own. */
export async function store(...rows: readonly EventRow[]): Promise<void> {
  for (const row of rows) await db.store(batchOf([row]));
}
