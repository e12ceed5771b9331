import { randomBytes } from 'node:crypto';
import { mergeParts } from '@sluice/shared/clickhouse/testing/merge-parts';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import {
  anEvent,
  aRegister,
  eventRow,
  type QueryService,
  startQuery,
  type TestEvent,
} from '../testing/query-service.ts';
import { expectEvents, listenTo } from '../testing/streams.ts';

// A granule of ClickHouse has rows of several workspaces where one ends and the next begins. Here the others' rows in it are larger
// than everything that a query may read.

/** The least that may be configured. */
const BUDGETS = { QUERY_BYTES_READ_MAX: String(1_024 * 1_024), QUERY_MEMORY_BYTES_MAX: String(16 * 1_024 * 1_024) };

/** Rows of each of two other workspaces: one is before `b`, the other after it. */
const OTHERS = 40;

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), { ...BUDGETS, STREAM_INTERVAL_MS: '50' });
});
afterAll(() => query.stop());

const large = () => randomBytes(75_000).toString('base64');

/** Stores events of `b` in one insert with large ones of others. */
async function storeBesideOthers(events: readonly TestEvent[]): Promise<void> {
  const others = Array.from({ length: OTHERS }, () => anEvent({ properties: JSON.stringify({ text: large() }) }));
  await query.insert('events', [
    ...others.map((event) => eventRow('a', event)),
    ...events.map((event) => eventRow('b', event)),
    ...others.map((event) => eventRow('c', event)),
  ]);
}

async function storePropertiesBesideOthers(): Promise<void> {
  const rowsOf = (workspace: string, values: readonly string[]) =>
    ['user', 'organization'].flatMap((kind) =>
      values.map((value, index) => ({
        ...{ workspace_id: workspace, kind, id: String(index), property: 'plan' },
        register: aRegister(1, 'set', JSON.stringify(value)),
      })),
    );
  const others = Array.from({ length: OTHERS }, large);
  await query.insert('entity_properties', [...rowsOf('a', others), ...rowsOf('b', ['pro']), ...rowsOf('c', others)]);
}

const DAY = 'startDate=2026-03-01&endDate=2026-03-01';

test('what others stored beside the rows of a workspace uses up no budget of its queries', async () => {
  const owned = { userId: '0', groupId: '0', properties: '{"plan":"pro","n":1}' };
  await storeBesideOthers([
    anEvent({ event: 'first', ...owned }),
    anEvent({ event: 'second', ...owned, timestampMs: Date.UTC(2026, 2, 1) + 1 }),
  ]);
  await storePropertiesBesideOthers();
  for (const layout of ['as inserted', 'merged']) {
    const found = await Promise.all(
      Object.entries(READS).map(async ([path, expected]) => {
        const response = await query.app.inject({ url: path, headers: { authorization: 'Bearer b' } });
        const { statusCode, body } = response;
        return [path, statusCode, body.includes(expected) ? expected : body.slice(0, 300)];
      }),
    );
    expect(found, layout).toEqual(Object.entries(READS).map(([path, expected]) => [path, 200, expected]));
    for (const table of ['events', 'entity_properties']) await mergeParts(query.clickHouse, table);
  }
});

/** Reads of large columns, and a piece of what each has to find. */
const READS: Readonly<Record<string, string>> = {
  '/events?total=exact': '"total":2',
  '/events?orderByField=receivedAt': '"plan":"pro"',
  '/events?properties.plan=pro': '"total":2',
  '/events?properties.n[gte]=1': '"total":2',
  '/events?user.properties.plan=pro': '"total":2',
  [`/events/series?${DAY}&interval=none&properties.plan=pro`]: '"total":2',
  [`/events/series?${DAY}&interval=none&measure=sum:properties.n`]: '"total":2',
  [`/events/series?${DAY}&interval=none&groupBy=properties.plan`]: '"pro"',
  [`/events/series?${DAY}&interval=none&groupBy=organization.properties.plan`]: '"pro"',
  [`/events/funnel?${DAY}&steps=first,second&groupBy=properties.plan`]: '"pro"',
  [`/events/retention?${DAY}&properties.plan=pro`]: '"size":1',
  [`/events/funnel/people?${DAY}&steps=first,second&properties.plan=pro&step=2`]: '"id":"0"',
  [`/events/properties?${DAY}`]: 'properties.plan',
  '/events/values?property=properties.plan': '"pro"',
  [`/events/export?${DAY}`]: '"plan":"pro"',
};

test('what others stored ends no stream, whatever is in the inserts that it reads', async () => {
  const streams = await listenTo(query);
  try {
    const stream = await streams.open('?properties.plan=pro', { workspace: 'b' });
    const { lastEventId } = stream;
    const events = Array.from({ length: 3 }, () => anEvent({ properties: '{"plan":"pro"}' }));
    for (const event of events) await storeBesideOthers([event]);
    await expectEvents(stream, events);
    await mergeParts(query.clickHouse, 'events');
    await expectEvents(await streams.open('', { workspace: 'b', lastEventId }), events);
    expect(stream.problems).toEqual([]);
  } finally {
    await streams.closeAll();
  }
});
