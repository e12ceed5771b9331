import { randomUUID } from 'node:crypto';
import { type Mirror, type Mirrors, startMirrors } from '@sluice/query-api/testing/mirrors';
import { anEvent } from '@sluice/query-api/testing/query-service';
import { send } from '@sluice/query-api/testing/views';
import { createLogger } from '@sluice/shared/base/log';
import { WEBHOOKS_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { eventually } from '@sluice/shared/testing/eventually';
import { FastColumns } from '@sluice/writer/erasure/fast-columns';
import { expect, inject, onTestFinished, test } from 'vitest';

async function start<Name extends string>(names: readonly Name[]) {
  const service = await startMirrors(inject('clickhouseUrl'), names, WEBHOOKS_ACCOUNT);
  onTestFinished(() => service.stop());
  return service;
}

async function read<Row>({ clickHouse }: Mirror, query: string): Promise<readonly Row[]> {
  return await (await clickHouse.query({ query, format: 'JSONEachRow' })).json<Row>();
}

const change = ({ clickHouse }: Mirror, query: string) =>
  clickHouse.command({ query, clickhouse_settings: { mutations_sync: '2' } });

/** What a server knows of declarations, the newest last. */
const lists = (mirror: Mirror) =>
  read(
    mirror,
    `SELECT workspace_id, names, toString(row_set) AS id, max(declared_at) AS declared
     FROM console_fast_properties GROUP BY ALL ORDER BY declared`,
  );

const declare = async (service: Mirrors, properties: readonly string[], workspace = 'a') =>
  expect((await send(service, 'PUT', '/properties/fast', { properties }, `admin-${workspace}`)).status).toBe(200);

const declared = async (service: Mirrors) =>
  (await send(service, 'GET', '/properties/fast')).body['properties'] as readonly string[];

/** Fills the columns of a server, as its writers do once a day. */
async function fill({ clickHouse }: Mirror): Promise<void> {
  const filler = new FastColumns(
    { ERASURE_INTERVAL_MS: 60_000, RETENTION_INTERVAL_MS: 60_000 },
    {
      ...{ client: clickHouse, writerId: randomUUID(), logger: createLogger('test', 'silent') },
      failures: { inc: () => undefined },
    },
  );
  filler.setOwner(true);
  await filler.takeRound();
}

test('what is declared while a server is away comes to it later; both fill what they have, and answer by columns', async () => {
  const service = await start(['a1', 'a2']);
  const { a1, a2 } = service;
  const events = ['pro', 'free'].map((plan) => anEvent({ properties: JSON.stringify({ plan, seats: 2 }) }));
  for (const { store } of [a1, a2]) await store('a', events);
  await change(a2, 'DETACH TABLE console_fast_properties');
  await declare(service, ['seats', 'plan']);
  await declare(service, ['plan']);
  await change(a2, 'ATTACH TABLE console_fast_properties');
  await eventually(() => lists(a2)).toEqual(await lists(a1));
  expect(await lists(a2)).toMatchObject([{ names: ['seats', 'plan'] }, { names: ['', 'plan'] }]);
  const columns = (mirror: Mirror) => read(mirror, "SELECT COLUMNS('^fast_') FROM events ORDER BY fast_2");
  for (const mirror of [a1, a2]) await fill(mirror);
  expect(await columns(a1)).toMatchObject([{ fast_2: '"free"' }, { fast_2: '"pro"' }]);
  expect(await columns(a2)).toEqual(await columns(a1));
  // Nothing changes a column alone. So it is seen which of the two is read.
  for (const mirror of [a1, a2]) await change(mirror, `ALTER TABLE events UPDATE fast_2 = '"${mirror.name}"' WHERE 1`);
  for (const [name, other] of [
    ['a1', a2],
    ['a2', a1],
  ] as const) {
    other.behaviour = 'refuses';
    const groups = async () => {
      const url = '/events/series?interval=none&startDate=2026-03-01&endDate=2026-03-02&groupBy=properties.plan';
      const { body } = await service.get(url);
      return (body as unknown as { series?: { group: unknown[] }[] }).series?.map(({ group }) => group[0]);
    };
    await eventually(groups).toEqual([name]);
    other.behaviour = 'answers';
  }
});

test('a server that has lost its lists gets them back, and the newest list is in force wherever it was declared', async () => {
  const service = await start(['a1', 'a2']);
  const { a1, a2 } = service;
  await declare(service, ['plan']);
  await eventually(() => lists(a2)).toEqual(await lists(a1));
  await change(a1, 'TRUNCATE TABLE console_fast_properties');
  await eventually(() => declared(service)).toEqual(['plan']);
  // As if the first one was restored from a backup that does not have the newest list.
  await a2.insert('console_fast_properties', [{ workspace_id: 'a', names: ['plan', 'seats'] }]);
  await eventually(() => declared(service)).toEqual(['plan', 'seats']);
  await declare(service, ['seats']);
  await eventually(() => lists(a2)).toEqual(await lists(a1));
  expect((await lists(a1)).at(-1)).toMatchObject({ names: ['', 'seats'] });
});

test('what reads see is set on one server and comes to all, also to one that was away or has lost it', async () => {
  const service = await start(['a1', 'a2']);
  const { a1, a2 } = service;
  const table = 'console_identity_settings';
  const set = async (identity: string) =>
    expect((await send(service, 'PUT', '/identities/settings', { identity }, 'admin-a')).status).toBe(200);
  const settings = (mirror: Mirror) =>
    read<{ identity: string }>(
      mirror,
      `SELECT workspace_id, identity, max(set_at) AS at FROM ${table} GROUP BY ALL ORDER BY at`,
    );
  await change(a2, `DETACH TABLE ${table}`);
  await set('raw');
  await set('linked');
  await change(a2, `ATTACH TABLE ${table}`);
  await eventually(() => settings(a2)).toEqual(await settings(a1));
  expect((await settings(a2)).map(({ identity }) => identity)).toEqual(['raw', 'linked']);
  await change(a1, `TRUNCATE TABLE ${table}`);
  await eventually(() => settings(a1)).toEqual(await settings(a2));
  // A server that is migrated notes that its workspace had events: somebody has said otherwise.
  await a2.insert(table, [{ workspace_id: 'a', identity: 'raw', set_at: 0 }]);
  await set('linked');
  await eventually(() => settings(a2)).toEqual(await settings(a1));
  expect((await settings(a1)).at(-1)?.identity).toBe('linked');
});

test('a database that is not the one of the file gets nothing', async () => {
  const service = await start(['a1', 'a2', 'a3']);
  const { a1, a2, a3 } = service;
  await a2.identify({ server: 'of others' });
  // Two rounds: the first one may have begun before.
  for (const workspace of ['a', 'b']) {
    await declare(service, ['plan'], workspace);
    await eventually(() => lists(a3)).toEqual(await lists(a1));
  }
  expect(await lists(a2)).not.toContainEqual(expect.objectContaining({ workspace_id: 'b' }));
});
