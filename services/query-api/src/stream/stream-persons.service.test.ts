import { mergeKeyOf } from '@sluice/shared/rows/merged-user';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import {
  type FieldFilter,
  type PropertyFilter,
  readMerges,
  type SelectionDocument,
  type SelectionField,
} from '../records/records.ts';
import { type KnownMerges, LOCAL_TABLES } from '../store/store.ts';
import { anEvent, aRegister, type QueryService, startQuery } from '../testing/query-service.ts';
import { asStreamRow, newestPosition, newestQuery, pageQuery, type StreamSelection } from './stream-query.ts';

const STORED = 30_000;

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
});
afterAll(() => query.stop());

/** Runs a statement, and returns its rows, and how many ClickHouse read for it. */
async function run({ sql, params }: { readonly sql: string; readonly params: object }) {
  const result = await query.clickHouse.query({
    ...{ query: sql, query_params: { ...params, workspace: 'a' }, format: 'JSONCompactEachRow' as const },
    clickhouse_settings: { wait_end_of_query: 1 },
  });
  const rows = await result.json<unknown[]>();
  return { rows, read: Number(JSON.parse(String(result.response_headers['x-clickhouse-summary'])).read_rows) };
}

test('a page of a stream that sees persons reads what its own events need, however many links and properties there are', async () => {
  const numbers = Array.from({ length: STORED }, (_, index) => String(index).padStart(5, '0'));
  const fact = { workspace_id: 'a', version: 1 };
  await query.insert('identity_links', [
    ...numbers.map((number) => ({ ...fact, anonymous_id: `v${number}`, user_id: `u${number}`, said: 0 })),
    { ...fact, anonymous_id: mergeKeyOf('old'), user_id: 'u10000', said: 1 },
    { ...fact, anonymous_id: mergeKeyOf('u00003'), user_id: 'u15000', said: 1 },
  ]);
  const pro = aRegister(1, 'set', '"pro"');
  await query.insert(
    'entity_properties',
    [...numbers.filter((_, index) => index % 2 === 0).map((number) => `u${number}`), 'u00003'].map((id) => ({
      ...{ workspace_id: 'a', kind: 'user', id, property: 'plan', register: pro },
    })),
  );
  const events = {
    ofVisitor: anEvent({ anonymousId: 'v00100' }),
    ofOther: anEvent({ anonymousId: 'v00101' }),
    ofStranger: anEvent({ anonymousId: 'stranger' }),
    ofUser: anEvent({ userId: 'u19000' }),
    ofFree: anEvent({ userId: 'u19001' }),
    ofOld: anEvent({ userId: 'old' }),
    ofMerged: anEvent({ anonymousId: 'v00003' }),
  };
  const name = new Map(Object.entries(events).map(([key, { uuid }]) => [uuid, key]));
  await query.store('a', Object.values(events));
  const to = newestPosition((await run(newestQuery(LOCAL_TABLES))).rows as never);
  const all = async (given: { readonly statement: (tables: typeof LOCAL_TABLES) => Parameters<typeof run>[0] }) =>
    (await run(given.statement(LOCAL_TABLES))).rows;
  const named = await readMerges({ all } as never, { workspace: 'a' });
  expect(named).toHaveLength(2);

  const pageOf = async (
    merges: KnownMerges,
    fields: readonly FieldFilter<SelectionField>[],
    properties: readonly PropertyFilter<SelectionDocument>[],
  ) => {
    const selection: StreamSelection = { workspace: 'a', identity: 'linked', fields, properties };
    const shown = new Map([['a', { hidden: undefined, keptFromMs: undefined, isLinked: true, merges }]]);
    const from = new Map(
      [...to].map(([shard]) => [shard, { block: 0, timestampMs: 0, uuid: '00000000-0000-0000-0000-000000000000' }]),
    );
    const { rows, read } = await run(pageQuery(LOCAL_TABLES, [selection], shown, { from, to, limit: 100 }));
    expect(read).toBeLessThan(STORED / 2);
    return rows.map((row) => name.get(asStreamRow(row as never).event[0] as string)).toSorted();
  };
  const plan = { document: 'user.properties', name: 'plan' } as const;
  const isPro = {
    ...plan,
    condition: { operator: 'eq', value: 'pro' },
  } as unknown as PropertyFilter<SelectionDocument>;
  const isNotPro = {
    ...plan,
    condition: { operator: 'ne', value: 'pro' },
  } as unknown as PropertyFilter<SelectionDocument>;
  const isUser = { field: 'userId', condition: { operator: 'in', value: ['u00100', 'u10000'] } } as const;
  for (const merges of [named, 'many'] as const) {
    expect(await pageOf(merges, [], [isPro])).toEqual(['ofMerged', 'ofOld', 'ofUser', 'ofVisitor']);
    expect(await pageOf(merges, [], [isNotPro])).toEqual(['ofFree', 'ofOther', 'ofStranger']);
    expect(await pageOf(merges, [isUser], [])).toEqual(['ofOld', 'ofVisitor']);
  }
});
