import { randomUUID } from 'node:crypto';
import { createLogger } from '@sluice/shared/base/log';
import { createDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import type { ChangeRow } from '@sluice/shared/rows';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, afterEach, beforeAll, beforeEach, inject } from 'vitest';
import { Erasure } from '../erasure/erasure.ts';
import { changeRow, createTestStore, eventRow, NOON, type TestStore } from './store.ts';

/** The store of a file of tests, with a database of its own. */
export let db: TestStore;
/** The erasure of a test, which does not run before it is started. */
export let erasure: Erasure;

export const failures = { inc: () => undefined };

export const DELETED_US = NOON * 1_000;

/** Each test of the file begins with an empty {@link db}, and an {@link erasure} that waits for nothing. */
export function prepareErasures(): void {
  beforeAll(async () => {
    const store = await createTestStore(inject('clickhouseUrl'), createDatabase);
    db = {
      ...store,
      async store(batch) {
        const stored = await store.store(batch);
        // The users of these tests have no visitors: their deletions are settled at once.
        await store.settle();
        return stored;
      },
    };
  });
  afterAll(() => db.close());
  beforeEach(async () => {
    const tables = ['events', 'entities', 'entity_properties', 'user_sightings', 'user_deletions', 'pending_deletions'];
    const statements = [...tables, 'identity_deletions', 'dead_letters'].map((table) => `TRUNCATE TABLE ${table}`);
    await db.client.command({ query: statements.join(' PARALLEL WITH ') });
    const config = { ERASURE_DELAY_MS: 0, ERASURE_INTERVAL_MS: 50, ERASURE_GATHER_MS: 0 };
    erasure = new Erasure(config, {
      client: db.writerClient,
      writerId: randomUUID(),
      logger: createLogger('test', 'silent'),
      failures,
    });
    erasure.setOwner(true);
  });
  afterEach(() => erasure.stop());
}

export function deletionOf(id: string, version = DELETED_US): ChangeRow {
  return changeRow({ id, operation: 'delete', version });
}

export async function count(query: string): Promise<number> {
  return (await db.read<{ found: number }>(`SELECT count() AS found FROM ${query}`))[0]?.found ?? Number.NaN;
}

/** Deleted users who are not erased yet. */
export const NOT_ERASED = '(SELECT DISTINCT user_id FROM pending_deletions)';

export const DAY_MS = 86_400_000;

/** An event of a user, so many days after noon, and received so many microseconds after the deletion. */
export function seenAt(user_id: string, day: number, received: number) {
  return eventRow({ user_id, timestamp: NOON + day * DAY_MS, received_at: DELETED_US + received });
}

/** When users were seen, in days since noon, as their rows say whatever is merged. */
export async function daysOf(...users: string[]): Promise<Record<string, readonly [first: number, last: number]>> {
  const days = (time: string) => `dateDiff('day', toDateTime64(${NOON / 1_000}, 3, 'UTC'), ${time})`;
  const rows = await db.read<{ id: string; first: number; last: number }>(
    `SELECT id, ${days('min(first_seen_at)')} AS first, ${days('max(last_seen_at)')} AS last FROM entities
     WHERE kind = 'user' AND id IN ('${users.join("','")}') GROUP BY id`,
  );
  return Object.fromEntries(rows.map(({ id, first, last }) => [id, [first, last]]));
}

export async function erase(): Promise<void> {
  erasure.start();
  await eventually(() => count(NOT_ERASED)).toBe(0);
}
