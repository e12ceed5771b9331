import { randomUUID } from 'node:crypto';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { createDatabase, type TestDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { metric } from '../testing/load.ts';
import { anEvent } from '../testing/query-service.ts';
import { watchClient } from '../testing/watched-client.ts';
import { manage, Receiver, startWebhooks, type WebhookService } from '../testing/webhooks.ts';
import { KnownWebhooks } from './known-webhooks.ts';
import { WebhookRegister } from './webhook-register.ts';

let database: TestDatabase;
let query: WebhookService;
/** What ClickHouse has read in each round of the deliveries. */
const rounds: { rows: number; bytes: number }[] = [];
let isAway = false;

/** A client that counts what the engine reads, and fails while ClickHouse is away. */
const watched = (client: ClickHouseClient) =>
  watchClient(client, {
    async before({ query: sql }) {
      if (isAway) throw new Error('away');
      // The first statement of a round.
      if (sql.includes('_part')) rounds.push({ rows: 0, bytes: 0 });
    },
    after({ rows, bytes }) {
      const round = rounds.at(-1);
      if (round) round.rows += rows;
      if (round) round.bytes += bytes;
    },
  });

beforeAll(async () => {
  database = await createDatabase(inject('clickhouseUrl'));
  query = await startWebhooks(database, {}, watched);
});
afterAll(async () => {
  await query[Symbol.asyncDispose]();
  await database.release();
});

const OTHERS = 3_000;

/** Adds webhooks of other workspaces, which are paused, with long filters. */
async function addOthers(changedAgoMs = 0): Promise<readonly string[]> {
  const ids = Array.from({ length: OTHERS }, () => randomUUID());
  const filter = JSON.stringify({ event: 'x'.repeat(1_000) });
  const changed_at = (Date.now() - changedAgoMs) * 1_000;
  await query.insert(
    'webhooks',
    ids.map((id, index) => ({ workspace_id: `other${index}`, id, url: 'https://example.com/', filter, changed_at })),
  );
  await query.insert(
    'webhook_states',
    ids.map((webhook_id) => ({ webhook_id, state: 'paused', reason: 'client' })),
  );
  await query.insert(
    'webhook_positions',
    ids.map((webhook_id) => ({ webhook_id, epoch: 1, sequence: 1, position: 'x' })),
  );
  return ids;
}

test('what the deliveries read each second does not grow with the number of webhooks', async () => {
  await using receiver = await Receiver.start();
  // What requests read is not counted.
  await using api = await startWebhooks(database, { WEBHOOK_DELIVERY: 'false' });
  const { body } = await manage(api, 'POST', '/webhooks', { url: receiver.url });
  await eventually(() => metric(query, 'sluice_webhooks_held')).toBe(1);
  const before = rounds.length;
  const [deleted = ''] = await addOthers();
  const register = new WebhookRegister(query.clickHouse);
  const [{ webhook } = { webhook: undefined }] = await register.list('other0');
  expect(webhook?.id).toBe(deleted);
  // What a deletion leaves in ClickHouse costs nothing either.
  if (webhook) await register.delete(webhook);
  await register.purge();
  const lastCostly = () => rounds.findLastIndex(({ rows, bytes }) => rows > 100 || bytes > 20_000);
  await eventually(lastCostly).toBeGreaterThanOrEqual(before);
  // A whole round in which nothing changes.
  await eventually(() => rounds.length - lastCostly()).toBeGreaterThan(2);
  // One that changes is noticed all the same, and no filter of another one is read for it.
  const quiet = rounds.length;
  await manage(api, 'PATCH', `/webhooks/${body.id}`, { state: 'paused' });
  await eventually(() => metric(query, 'sluice_webhooks_held')).toBe(0);
  await eventually(() => rounds.length).toBeGreaterThan(quiet + 2);
  expect(Math.max(...rounds.slice(quiet, -1).map(({ bytes }) => bytes))).toBeLessThan(OTHERS * 200);
  await manage(api, 'PATCH', `/webhooks/${body.id}`, { state: 'active' });
  const event = anEvent();
  await query.store('a', [event]);
  await eventually(() => receiver.uuids).toEqual([event.uuid]);
  await manage(api, 'DELETE', `/webhooks/${body.id}`);
  await eventually(() => metric(query, 'sluice_webhooks_held')).toBe(0);
});

test('a look misses nothing that was dated before the last one, or while ClickHouse was away', async () => {
  const known = new KnownWebhooks(watched(query.clickHouse));
  await known.look();
  const paused = known.paused.size;
  expect(await known.look()).toEqual([]);
  // An insert that takes minutes has the time of its beginning.
  const late = await addOthers(300_000);
  const seen = new Set(await known.look());
  expect(late.filter((id) => !seen.has(id))).toEqual([]);
  expect(known.paused.size).toBe(paused + OTHERS);
  const webhook = { workspace_id: 'late', id: randomUUID(), url: 'https://example.com/', filter: '{}' };
  await query.insert('webhooks', [{ ...webhook, changed_at: 1 }]);
  isAway = true;
  await expect(known.look()).rejects.toThrow('away');
  isAway = false;
  await known.look();
  expect([...known.active]).toEqual([[webhook.id, 'late']]);
});
