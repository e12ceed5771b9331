import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { type TestDatabase, takeDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { send } from '../testing/views.ts';
import { manage, startWebhooks, type WebhookService } from '../testing/webhooks.ts';
import { WebhookRegister } from '../webhooks/webhook-register.ts';

/** What is stored next waits for this. */
class Hold {
  before: (() => Promise<void>) | undefined;

  readonly wrap = (client: ClickHouseClient): ClickHouseClient =>
    new Proxy(client, {
      get: (target, name) => {
        const member = Reflect.get(target, name) as unknown;
        if (name !== 'insert') return typeof member === 'function' ? member.bind(target) : member;
        return async (given: Parameters<ClickHouseClient['insert']>[0]) => {
          const { before } = this;
          this.before = undefined;
          await before?.();
          return await target.insert(given);
        };
      },
    });
}

const holds = { late: new Hold(), other: new Hold() };
let database: TestDatabase;
/** Two instances of the service. */
let late: WebhookService;
let other: WebhookService;

beforeAll(async () => {
  database = await takeDatabase(inject('clickhouseUrl'));
  late = await startWebhooks(database, { WEBHOOK_DELIVERY: 'false' }, holds.late.wrap);
  other = await startWebhooks(database, { WEBHOOK_DELIVERY: 'false' }, holds.other.wrap);
});
afterAll(async () => {
  await late[Symbol.asyncDispose]();
  await other[Symbol.asyncDispose]();
  await database.release();
});

const URL = 'https://example.com/before';
const AFTER = 'https://example.com/after';

async function createWebhook() {
  const { body } = await manage(other, 'POST', '/webhooks', { url: URL });
  const register = new WebhookRegister(holds.other.wrap(other.clickHouse));
  const stored = async () => {
    const found = await register.find('a', body.id);
    if (!found) throw new Error('the webhook is gone');
    return found;
  };
  return { path: `/webhooks/${body.id}`, secret: body.secret, register, stored };
}

/**
 * Changes something at one instance while the other one changes it as well. The late one reads last, and stores when the other is
 * done: what it stores is newer, and made of what was there before.
 */
async function whileLate<Result>(first: () => Promise<Result>, meanwhile: () => Promise<unknown>): Promise<Result> {
  const [otherHasRead, lateHasRead] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  holds.other.before = async () => {
    otherHasRead.resolve();
    await lateHasRead.promise;
  };
  const changed = meanwhile();
  holds.late.before = async () => {
    lateHasRead.resolve();
    await changed;
  };
  await otherHasRead.promise;
  return await first();
}

test('a webhook that is changed while its secret is rotated has both the change and the new secret', async () => {
  const { path, secret, stored } = await createWebhook();
  let rotated = '';
  const { status } = await whileLate(
    () => manage(late, 'PATCH', path, { url: AFTER }),
    async () => {
      rotated = (await manage(other, 'POST', `${path}/rotate`)).body.secret;
    },
  );
  expect(status).toBe(200);
  expect((await stored()).webhook).toMatchObject({ url: AFTER, secret: rotated, previousSecret: secret });
});

test('a secret that is rotated while the webhook is changed, or rotated elsewhere, signs', async () => {
  const { path, stored } = await createWebhook();
  const { body } = await whileLate(
    () => manage(late, 'POST', `${path}/rotate`),
    () => manage(other, 'PATCH', path, { filter: { event: 'paid' } }),
  );
  expect((await stored()).webhook).toMatchObject({ filter: { event: 'paid' }, secret: body.secret });
  let between = '';
  const last = await whileLate(
    () => manage(late, 'POST', `${path}/rotate`),
    async () => {
      between = (await manage(other, 'POST', `${path}/rotate`)).body.secret;
    },
  );
  expect((await stored()).webhook).toMatchObject({ secret: last.body.secret, previousSecret: between });
});

test('changes of different members at once are all there', async () => {
  const { path, stored } = await createWebhook();
  await whileLate(
    () => manage(late, 'PATCH', path, { url: AFTER }),
    () => manage(other, 'PATCH', path, { batched: true, filter: { event: 'paid' } }),
  );
  expect((await stored()).webhook).toMatchObject({ url: AFTER, batched: true, filter: { event: 'paid' } });
  const all = [late, other].flatMap((service) => [
    manage(service, 'PATCH', path, { url: URL }),
    manage(service, 'POST', `${path}/rotate`),
  ]);
  const responses = await Promise.all(all);
  expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  const { webhook } = await stored();
  const secrets = responses.map(({ body }) => body.secret).filter((secret) => secret !== undefined);
  expect([webhook.url, [webhook.secret, webhook.previousSecret].sort()]).toEqual([URL, secrets.sort()]);
});

test('a webhook that is deleted while it is changed stays deleted', async () => {
  const { path } = await createWebhook();
  const { status } = await whileLate(
    () => manage(late, 'PATCH', path, { url: AFTER }),
    () => manage(other, 'DELETE', path),
  );
  expect([status, (await manage(other, 'GET', path)).status]).toEqual([404, 404]);
});

test('a delivery that gives up does not pause a webhook that was resumed since it began', async () => {
  const { path, register, stored } = await createWebhook();
  const { webhook, rows, state, progress } = await stored();
  const failing = { position: progress?.position, attempts: 3, failing_since: Date.now() };
  await other.insert('webhook_positions', [{ webhook_id: webhook.id, epoch: 1, sequence: 1, ...failing }]);
  await manage(late, 'POST', `${path}/resume`);
  expect(await register.pause(webhook, rows.state.version, 'failing')).toBe(false);
  const resumed = await stored();
  expect(resumed.state).toMatchObject({ state: 'active', sinceMs: state.sinceMs });
  expect(await register.pause(webhook, resumed.rows.state.version, 'failing')).toBe(true);
  // A client resumes it while another delivery pauses it, and the other way round.
  await whileLate(
    () => manage(late, 'PATCH', path, { state: 'paused' }),
    () => manage(other, 'POST', `${path}/resume`),
  );
  expect((await stored()).state).toMatchObject({ state: 'paused', reason: 'client' });
  await whileLate(
    () => manage(late, 'POST', `${path}/resume`),
    async () => void (await register.pause(webhook, (await stored()).rows.state.version, 'gone')),
  );
  expect((await stored()).state).toMatchObject({ state: 'active', reason: '' });
});

test('a change is stored although the clock was set back since the one before', async () => {
  const { path, stored } = await createWebhook();
  const { webhook } = await stored();
  const changed_at = (Date.now() + 3_600_000) * 1_000;
  const row = { workspace_id: 'a', id: webhook.id, url: URL, filter: '{}', secret: 's', created_at: 1e12, changed_at };
  await other.insert('webhooks', [row]);
  await manage(other, 'PATCH', path, { url: AFTER });
  expect((await stored()).webhook).toMatchObject({ url: AFTER, secret: 's' });
});

test('changes of a view and of a dashboard at once are all there', async () => {
  const parameters = { event: 'paid', range: '30d', interval: 'none' };
  const view = (await send(other, 'POST', '/views', { name: 'Before', report: 'series', parameters })).body;
  const changed = { ...parameters, event: 'refunded' };
  await whileLate(
    () => send(late, 'PATCH', `/views/${view.id}`, { name: 'After' }),
    () => send(other, 'PATCH', `/views/${view.id}`, { parameters: changed }),
  );
  expect((await send(other, 'GET', `/views/${view.id}`)).body).toMatchObject({ name: 'After', parameters: changed });
  const dashboard = (await send(other, 'POST', '/dashboards', { name: 'Before', tiles: [] })).body;
  await whileLate(
    () => send(late, 'PATCH', `/dashboards/${dashboard.id}`, { tiles: [{ view: view.id, width: 2 }] }),
    () => send(other, 'PATCH', `/dashboards/${dashboard.id}`, { name: 'After' }),
  );
  expect((await send(other, 'GET', `/dashboards/${dashboard.id}`)).body).toMatchObject({
    ...{ name: 'After', tiles: [{ view: view.id, width: 2 }] },
  });
});
