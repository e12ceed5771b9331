import { createDatabase, type TestDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { aWebhook, manage, startWebhooks, type WebhookService } from '../testing/webhooks.ts';
import { WebhookLeases } from './webhook-leases.ts';
import { WebhookRegister } from './webhook-register.ts';

let database: TestDatabase;
let query: WebhookService;

beforeAll(async () => {
  database = await createDatabase(inject('clickhouseUrl'));
  query = await startWebhooks(database, { WEBHOOK_DELIVERY: 'false' });
});
afterAll(async () => {
  await query[Symbol.asyncDispose]();
  await database.release();
});

const TABLES = ['webhook_states', 'webhook_positions', 'webhook_leases', 'webhook_deliveries'] as const;

/** Returns how many rows a table has; a poll reads all of them. */
async function rowsOf(table: string): Promise<number> {
  const result = await query.clickHouse.query({ query: `SELECT count() AS n FROM ${table}`, format: 'JSONEachRow' });
  return (await result.json<{ n: number }>())[0]?.n ?? 0;
}

async function create(): Promise<string> {
  const { body } = await manage(query, 'POST', '/webhooks', { url: 'https://example.com/' });
  await manage(query, 'PATCH', `/webhooks/${body.id}`, { state: 'paused' });
  await query.insert('webhook_leases', [{ webhook_id: body.id, epoch: 1, holder: 'h', lease_ms: 0 }]);
  await query.insert('webhook_deliveries', [{ webhook_id: body.id, slot: 1, at: 1e12, message_id: 'm' }]);
  return body.id;
}

/** Leaves only what a deletion leaves for an hour, as if it was longer ago. */
async function age(): Promise<void> {
  await query.clickHouse.command({
    query: `INSERT INTO webhooks SELECT * REPLACE (changed_at - toIntervalHour(2) AS changed_at) FROM webhooks WHERE is_deleted`,
  });
  await query.clickHouse.command({
    query: `DELETE FROM webhooks WHERE is_deleted AND changed_at > now64(6) + toIntervalDay(36525) - toIntervalHour(1)`,
  });
}

test('deleted webhooks leave nothing behind, and nothing brings one back', async () => {
  const kept = await create();
  const before = new Map<string, number>();
  for (const table of ['webhooks', ...TABLES]) before.set(table, await rowsOf(table));
  const deleted: string[] = [];
  for (let count = 0; count < 3; count += 1) {
    const id = await create();
    deleted.push(id);
    expect((await manage(query, 'DELETE', `/webhooks/${id}`)).status).toBe(204);
  }
  for (const table of TABLES) await eventually(() => rowsOf(table)).toBe(before.get(table));
  await eventually(() => rowsOf('webhooks')).toBe((before.get('webhooks') ?? 0) + deleted.length);
  // What was under way comes late: a change, and a position.
  const [id = ''] = deleted;
  const register = new WebhookRegister(query.clickHouse);
  await register.save(aWebhook(id));
  await query.insert('webhook_positions', [{ webhook_id: id, epoch: 1, sequence: 9, position: 'late' }]);
  expect((await manage(query, 'GET', `/webhooks/${id}`)).status).toBe(404);
  expect((await register.list('a')).map(({ webhook }) => webhook.id)).toEqual([kept]);
  await age();
  const last = await create();
  await manage(query, 'DELETE', `/webhooks/${last}`);
  for (const table of TABLES) await eventually(() => rowsOf(table)).toBe(before.get(table));
  // The rows of the last deletion alone.
  await eventually(() => rowsOf('webhooks')).toBe((before.get('webhooks') ?? 0) + 1);
  expect((await register.list('a')).map(({ webhook }) => webhook.id)).toEqual([kept]);
});

test('a webhook is resumed from what its holder has stored last, once that has left it', async () => {
  const { body } = await manage(query, 'POST', '/webhooks', { url: 'https://example.com/' });
  const [webhook, holder] = [body.id, new WebhookLeases(query.clickHouse, 'holder', 600_000)];
  const stored = { webhook_id: webhook, epoch: 1, position: 'p', attempts: 1 };
  await query.insert('webhook_positions', [{ ...stored, sequence: 1 }]);
  await holder.claim([{ webhook, epoch: 1 }]);
  let isResumed = false;
  const resuming = manage(query, 'POST', `/webhooks/${webhook}/resume`).finally(() => {
    isResumed = true;
  });
  await eventually(async () => (await holder.newest([webhook])).get(webhook)?.epoch).toBe(2);
  // It has not learned of it yet.
  await query.insert('webhook_positions', [{ ...stored, sequence: 2, sending_to: 'a message' }]);
  expect(isResumed).toBe(false);
  await holder.release([{ webhook, epoch: 1 }]);
  expect((await resuming).status).toBe(200);
  const found = await new WebhookRegister(query.clickHouse).find('a', webhook);
  expect(found?.progress).toMatchObject({ epoch: 2, position: 'p', sendingTo: 'a message', attempts: 0 });
});
