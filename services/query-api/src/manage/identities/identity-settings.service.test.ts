import { readMigrations } from '@sluice/shared/clickhouse/migrate';
import { WEBHOOKS_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { anEvent, type QueryService, startQuery } from '../../testing/query-service.ts';
import { send } from '../../testing/views.ts';

let query: QueryService;

/** Workspaces that had events before there was this setting; the others did not. */
const OLDER = ['c', 'd'];

async function migration(): Promise<string> {
  return (await readMigrations()).find(({ name }) => name.endsWith('raw-where-events-are.sql'))?.sql ?? '';
}

const migrate = async () => query.clickHouse.command({ query: await migration() });

/** Jane, who visited before, and somebody of whom nothing else is known. */
const events = () => [
  anEvent({ event: 'visited', anonymousId: 'phone' }),
  anEvent({ event: 'paid', userId: 'jane', timestampMs: Date.UTC(2026, 2, 1, 12) }),
  anEvent({ event: 'visited', anonymousId: 'kiosk' }),
];

async function storeWith(workspace: string): Promise<void> {
  const link = { workspace_id: workspace, anonymous_id: 'phone', user_id: 'jane', version: 1, said: 0 };
  await query.insert('identity_links', [link]);
  await query.store(workspace, events());
}

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), WEBHOOKS_ACCOUNT);
  for (const workspace of OLDER) await storeWith(workspace);
  await migrate();
  for (const workspace of ['a', 'b']) await storeWith(workspace);
});
afterAll(() => query.stop());

const RANGE = 'startDate=2026-03-01&endDate=2026-03-02';

/** What a workspace sees without `identity`, and with more parameters. */
async function seen(workspace: string, more = '') {
  const get = async (path: string) => {
    const { status, body } = await query.get(`${path}&${more}`, workspace);
    expect(status).toBe(200);
    return body as typeof body & { steps: { count: number }[]; events: unknown[] };
  };
  const page = await get('/events?userId=jane');
  const { total } = await get(`/events/series?${RANGE}&interval=none&measure=users`);
  const { steps } = await get(`/events/funnel?${RANGE}&steps=visited,paid`);
  return {
    ...{ ofJane: page.total, users: total, steps: steps.map(({ count }) => count) },
    isNamed: page.results.map((record) => Object.hasOwn(record, 'linkedUserId')).every(Boolean),
  };
}

const PERSONS = { ofJane: 2, users: 2, steps: [1, 1], isNamed: true };
const AS_SENT = { ofJane: 1, users: 1, steps: [0, 0], isNamed: false };

const put = (workspace: string, body: object, key = `admin-${workspace}`) =>
  send(query, 'PUT', '/identities/settings', body, key);

const setting = async (workspace: string) => (await query.get('/identities/settings', workspace)).body;

test('reads of a workspace see persons, unless they say otherwise, and until its admin says otherwise', async () => {
  expect(await setting('a')).toEqual({ identity: 'linked' });
  expect(await seen('a')).toEqual(PERSONS);
  expect(await seen('a', 'identity=raw')).toEqual(AS_SENT);
  expect(await put('a', { identity: 'raw' })).toMatchObject({ status: 200, body: { identity: 'raw' } });
  expect(await setting('a')).toEqual({ identity: 'raw' });
  expect(await seen('a')).toEqual(AS_SENT);
  expect(await seen('a', 'identity=linked')).toEqual(PERSONS);
  expect(await seen('b')).toEqual(PERSONS);
  await put('a', { identity: 'linked' });
  expect(await seen('a')).toEqual(PERSONS);
});

test('a workspace that had events before there was this setting is read as before, until its admin says otherwise', async () => {
  expect(await seen('c')).toEqual(AS_SENT);
  expect(await setting('c')).toEqual({ identity: 'raw' });
  await put('c', { identity: 'linked' });
  expect(await seen('c')).toEqual(PERSONS);
  // Several services may apply it.
  await migrate();
  expect(await setting('c')).toEqual({ identity: 'linked' });
  expect(await setting('d')).toEqual({ identity: 'raw' });
});

test('which workspaces have events is answered from counts', async () => {
  const [, select = ''] = /^(SELECT[\s\S]+)/m.exec(await migration()) ?? [];
  const plan = await query.clickHouse.query({ query: `EXPLAIN ${select}`, format: 'TabSeparatedRaw' });
  expect(await plan.text()).toMatch(/ReadFromMergeTree \(by_(day|hour)\)/);
});

test('what is set counts also when the clock was ahead that dated what was set before', async () => {
  const ahead = { workspace_id: 'e', identity: 'raw', set_at: (Date.now() + 3_600_000) * 1_000 };
  await query.insert('console_identity_settings', [ahead]);
  expect(await setting('e')).toEqual({ identity: 'raw' });
  await put('e', { identity: 'linked' });
  expect(await setting('e')).toEqual({ identity: 'linked' });
});

test('a page goes on after its cursor when what reads see has changed meanwhile', async () => {
  await query.store('f', events());
  const first = (await query.get('/events?event=visited&limit=1', 'f')).body;
  await put('f', { identity: 'raw' });
  const second = (await query.get(`/events?event=visited&limit=1&cursor=${first.nextCursor}`, 'f')).body;
  expect([...first.results, ...second.results]).toHaveLength(2);
  expect(second.nextCursor).toBeNull();
});

test('a saved view and its tile see what the workspace has set', async () => {
  await storeWith('g');
  const parameters = { ...Object.fromEntries(new URLSearchParams(RANGE)), interval: 'none', measure: 'users' };
  const view = await send(query, 'POST', '/views', { name: 'Users', report: 'series', parameters }, 'admin-g');
  const tiles = [{ view: view.body.id, width: 1 }];
  const { body } = await send(query, 'POST', '/dashboards', { name: 'All', tiles }, 'admin-g');
  const tile = async () => (await query.get(`/dashboards/${body.id}/tiles/${view.body.id}`, 'g')).body.total;
  expect(await tile()).toBe(2);
  await put('g', { identity: 'raw' });
  expect(await tile()).toBe(1);
});

test('it is changed with the scope admin alone, to something that reads can see', async () => {
  expect((await put('a', { identity: 'raw' }, 'a')).status).toBe(403);
  for (const body of [{}, { identity: 'both' }, { identity: 'raw', more: 1 }]) {
    expect((await put('a', body)).status).toBe(400);
  }
  expect((await query.get('/identities/settings?of=a')).status).toBe(400);
});

test('where nothing can be stored, it can be read, and not changed', async () => {
  const other = await startQuery(inject('clickhouseUrl'));
  try {
    expect((await other.get('/identities/settings')).body).toEqual({ identity: 'linked' });
    const refused = await send(other, 'PUT', '/identities/settings', { identity: 'raw' }, 'admin-a');
    expect(refused.body['code']).toBe('views_not_available');
  } finally {
    await other.stop();
  }
});
