import { WEBHOOKS_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import fc, { sample } from '@sluice/shared/testing/fast-check';
import { createDocumentChecker } from '@sluice/shared/testing/openapi';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { declareFast, fillFast } from './testing/fast-properties.ts';
import { document } from './testing/property-filters.ts';
import { anEvent, type QueryService, startQuery, type TestEvent } from './testing/query-service.ts';
import { send } from './testing/views.ts';

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), WEBHOOKS_ACCOUNT);
});
afterAll(() => query.stop());

const START = Date.UTC(2026, 2, 1);
const HOUR_MS = 3_600_000;

/** Values whose types, digits and characters are easily lost, and what the columns leave to the text, as ingest-api writes them. */
const VALUES = [
  ...['"pro"', '"free"', '1', '"1"', '1.5', '-0', '0', '1e+21', 'true', 'false', 'null', '"null"', '""', '"?"'],
  ...[
    '[1,"a"]',
    '["pro"]',
    '{"b":"pro"}',
    '[]',
    '{}',
    '123456789012345678',
    '1729384756102938475',
    '12345678901234567890',
  ],
  ...['-9007199254740993', '"\\ud800x"', '"a\\\\b/\\u0000ü"', '"ä\\u001f"', '"1234567890123456789"'],
  JSON.stringify('long'.repeat(80)),
];

/** Texts with one of two properties, or both, also twice, and with members for which ClickHouse refuses the whole text. */
const anyText = fc.oneof(
  { weight: 1, arbitrary: document.map((json) => JSON.stringify(json)) },
  {
    weight: 4,
    arbitrary: fc
      .array(
        fc.oneof(
          fc.tuple(fc.constantFrom('plan', 'amount', 'plan.b'), fc.constantFrom(...VALUES)),
          fc.constantFrom(['odd', '"\\udfff"'], ['odd', '123456789012345678901234567890'], ['x', '"plan"']),
        ),
        { maxLength: 4 },
      )
      .map((members) => `{${members.map(([name, json]) => `"${name}":${json}`).join(',')}}`),
  },
);

const anyEvent = fc.record({
  uuid: fc.uuid(),
  timestampMs: fc.nat(96).map((hours) => START + hours * HOUR_MS),
  event: fc.constantFrom('opened', 'closed'),
  userId: fc.constantFrom('', 'ada', 'bob', 'cem'),
  groupId: fc.constantFrom('', 'acme'),
  properties: anyText,
});

const RANGE = 'startDate=2026-03-01&endDate=2026-03-05T12:00:00Z';

/** What the columns can answer, on its own, together, and beside what they cannot. */
const READS = [
  ...['groupBy=properties.plan', 'groupBy=properties.plan,properties.amount', 'groupBy=properties.amount,event'],
  ...['sum', 'min', 'p50'].map((measure) => `measure=${measure}:properties.amount`),
  'measure=avg:properties.amount&groupBy=properties.plan&groups=3',
  'measure=users&groupBy=properties.plan.b&properties.plan[exists]=true',
  'groupBy=user.properties.plan&properties.amount[gte]=0',
  ...['pro', '1', '1.5', '0', '-0', '1e+21', 'true', 'null', '?', '["pro"]', '123456789012345678', 'a\\b/\0ü'].map(
    (value) => `properties.plan=${encodeURIComponent(value)}`,
  ),
  ...['ne]=pro', 'ne]=null', 'exists]=true', 'exists]=false', 'in]=pro,free,1', 'in]=12345678901234567890,a'].map(
    (filter) => `properties.plan[${filter}`,
  ),
  ...['prefix]=p', 'contains]=%00', 'contains]=r', 'gte]="pro"', 'gt]=0', 'lte]=1', 'lt]=123456789012345680'].map(
    (filter) => `properties.plan[${filter}`,
  ),
  'properties.amount[exists]=false',
  'properties.plan[ne]=pro&properties.amount[lte]=1&event=opened&context.plan[exists]=false',
].map((parameters) => `/events/series?interval=day&${RANGE}&${parameters}`);

const OTHER_READS = [
  `/events/funnel?steps=opened,closed&${RANGE}&groupBy=properties.plan&properties.amount[exists]=true`,
  ...['step1.properties.plan=pro', 'step1.properties.plan[ne]=pro&step2.properties.amount[gte]=0'].map(
    (filters) => `/events/funnel?steps=opened,closed&${RANGE}&${filters}&step2.context.plan[exists]=false`,
  ),
  `/events/funnel?steps=opened,opened,closed&by=organization&${RANGE}&step2.properties.plan[in]=1,free,["pro"]&properties.plan[exists]=true`,
  `/events/retention?interval=day&${RANGE}&groupBy=properties.plan&properties.plan[ne]=free`,
];

async function read(url: string, workspace: string): Promise<string> {
  const { status, text } = await query.get(url, workspace);
  expect([status, url], text).toEqual([200, url]);
  // The last digit of a sum depends on the order of its numbers, which ClickHouse does not promise.
  return /measure=(?:sum|avg)/.test(url) ? text.replaceAll(NUMBER, (number) => Number(number).toPrecision(12)) : text;
}

const NUMBER = /-?\d+(?:\.\d+)?(?:e[-+]?\d+)?/g;

test('whatever columns rows have, reports answer as from the text alone', async () => {
  const events: TestEvent[] = [
    ...sample(anyEvent, 300).map((fields, index) => anEvent({ ...fields, receivedAtUs: START * 1_000 + index })),
    // Each value is in the column, or is not, for certain.
    ...VALUES.map((value) =>
      anEvent({ userId: 'all', timestampMs: START, properties: `{"plan":${value},"amount":${value}}` }),
    ),
  ];
  for (const workspace of ['a', 'b']) await query.store(workspace, events);
  // Rows of an older list, rows whose columns have other properties now, and rows that nobody has filled.
  const [older, other, now] = [
    ['plan', 'x'],
    ['amount', 'plan', 'x'],
    ['plan', 'amount', '', 'a'],
  ];
  for (const names of [other, older, now]) await declareFast(query, 'b', names);
  const of = (third: number) => `cityHash64(uuid) % 7 IN (${[third, third + 1]})`;
  await fillFast(query, 'b', older, of(0));
  await fillFast(query, 'b', other, of(2));
  await fillFast(query, 'b', now, `${of(4)} OR user_id = 'all'`);
  for (const url of [...READS, ...OTHER_READS]) expect(await read(url, 'b'), url).toBe(await read(url, 'a'));
});

test('a report reads the column of a row, and not its text, where the row says that it has the property', async () => {
  const names = ['', 'plan'];
  await declareFast(query, 'c', names);
  const ofPlan = (plan: string) =>
    anEvent({ event: 'opened', userId: plan, timestampMs: START, properties: `{"plan":"${plan}"}` });
  await query.store('c', [ofPlan('pro'), ofPlan('free')]);
  await fillFast(query, 'c', names, "position(properties, 'pro') > 0");
  // Nothing changes a column alone. So it is seen which of the two is read.
  await query.clickHouse.command({
    query: `ALTER TABLE events UPDATE fast_2 = '"column"' WHERE workspace_id = 'c'`,
    clickhouse_settings: { mutations_sync: '2' },
  });
  const { body } = await query.get(`/events/series?interval=none&${RANGE}&groupBy=properties.plan`, 'c');
  const groups = (body as unknown as { series: { group: unknown[] }[] }).series.map(({ group }) => group[0]);
  expect(groups).toEqual(['column', 'free']);
  const counted = async (plan: string) => {
    const { text } = await query.get(`/events/series?interval=none&${RANGE}&properties.plan=${plan}`, 'c');
    return JSON.parse(text).series[0].total;
  };
  expect([await counted('column'), await counted('free'), await counted('pro')]).toEqual([1, 1, 0]);
  const completed = async (plan: string) => {
    const { text } = await query.get(`/events/funnel?steps=opened,opened&${RANGE}&step1.properties.plan=${plan}`, 'c');
    return JSON.parse(text).steps[0].count;
  };
  expect([await completed('column'), await completed('free'), await completed('pro')]).toEqual([1, 1, 0]);
});

const put = (properties: unknown, workspace: string, key = `admin-${workspace}`) =>
  send(query, 'PUT', '/properties/fast', { properties }, key);
const declared = async (workspace: string) => (await send(query, 'GET', '/properties/fast', undefined, workspace)).body;

/** The columns of what a workspace has declared last. */
async function columns(workspace: string): Promise<readonly string[] | undefined> {
  const sql = `SELECT names FROM console_fast_properties WHERE workspace_id = '${workspace}' ORDER BY declared_at DESC LIMIT 1`;
  const [row] = await query.clickHouse
    .query({ query: sql, format: 'JSONEachRow' })
    .then((result) => result.json<{ names: string[] }>());
  return row?.names;
}

test('an admin declares properties in place of others: those that stay keep their columns, and the newest counts whatever the clock was', async () => {
  expect(await declared('d')).toEqual({ properties: [] });
  expect((await put(['plan', 'amount', 'seats'], 'd')).body).toEqual({ properties: ['plan', 'amount', 'seats'] });
  await put(['seats', 'plan'], 'd');
  expect(await columns('d')).toEqual(['plan', '', 'seats']);
  const ahead = { workspace_id: 'd', names: ['other'], declared_at: (Date.now() + 3_600_000) * 1_000 };
  await query.insert('console_fast_properties', [ahead]);
  await put(['country', 'seats'], 'd');
  expect(await declared('d')).toEqual({ properties: ['country', 'seats'] });
  // A list from before counts again.
  await put(['plan', 'amount', 'seats'], 'd');
  expect([...((await declared('d'))['properties'] as string[])].sort()).toEqual(['amount', 'plan', 'seats']);
  await put([], 'd');
  expect([await declared('d'), await columns('d')]).toEqual([{ properties: [] }, []]);
  expect(await declared('e')).toEqual({ properties: [] });
});

test('names that mean several places, or that the text writes in another way, are refused, and so is more than there are columns for', async () => {
  const many = (count: number) => Array.from({ length: count }, (_, index) => `p${index}`);
  const wrong = ['a.b', '', '\0', '\ud800', 'x'.repeat(201), '1234567890123456789', 5];
  const refused = await put(wrong, 'f');
  expect([refused.status, refused.paths]).toEqual([400, wrong.map((_, index) => `properties.${index}`)]);
  for (const properties of [many(17), ['a', 'a'], 'plan', undefined]) {
    expect(await put(properties, 'f')).toMatchObject({ status: 400, paths: ['properties'] });
  }
  expect((await put(['plan'], 'f', 'f')).status).toBe(403);
  expect((await put(many(16), 'f')).status).toBe(200);
  expect(await columns('f')).toEqual(many(16));
});

test('a property with many different values in the newest events gets a column without a dictionary, while there is one', async () => {
  const events = Array.from({ length: 2_500 }, (_, index) =>
    anEvent({ timestampMs: START + index, properties: `{"amount":${index}.5,"plan":"${index % 3}","id":"${index}"}` }),
  );
  await query.store('h', events);
  await put(['amount', 'plan'], 'h');
  expect(await columns('h')).toEqual(['plan', ...Array.from({ length: 7 }, () => ''), 'amount']);
  // Those that stay keep their columns, and what finds none of its kind gets another one.
  const few = Array.from({ length: 8 }, (_, index) => `few ${index}`);
  await put(['id', ...few, 'amount', 'plan'], 'h');
  expect(await columns('h')).toEqual(['plan', ...few.slice(0, 7), 'amount', 'id', 'few 7']);
});

test('responses are those of the OpenAPI document', async () => {
  const checker = createDocumentChecker((await query.app.inject('/openapi.json')).json());
  for (const [operation, payload, key] of [
    ['GET /properties/fast', undefined, 'g'],
    ['PUT /properties/fast', { properties: ['plan'] }, 'admin-g'],
    ['PUT /properties/fast', { properties: [''] }, 'admin-g'],
    ['PUT /properties/fast', {}, 'g'],
  ] as const) {
    const [method, url] = operation.split(' ') as ['GET', string];
    const headers = { authorization: `Bearer ${key}` };
    const response = await query.app.inject({ method, url, headers, ...(payload && { payload }) });
    expect(response.statusCode).toBeLessThan(500);
    expect(checker.errorsOfResponse(operation, response), response.body).toBeUndefined();
  }
});
