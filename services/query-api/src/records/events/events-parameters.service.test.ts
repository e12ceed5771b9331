import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { anEvent, type QueryService, startQuery } from '../../testing/query-service.ts';
import { FILTER_FIELDS } from './event-columns.ts';

let query: QueryService;

const noon = Date.UTC(2026, 2, 1, 12);
const events = [
  anEvent({
    uuid: '0190a0a0-0000-7000-8000-000000000001',
    timestampMs: Date.UTC(2026, 1, 28, 23, 59, 59, 999),
    userId: 'ada',
  }),
  anEvent({ uuid: '0190a0a0-0000-7000-8000-000000000002', timestampMs: Date.UTC(2026, 2, 1), groupId: 'acme' }),
  anEvent({ uuid: '0190a0a0-0000-7000-8000-000000000003', timestampMs: noon, anonymousId: 'anon', instanceId: 'i-1' }),
  anEvent({
    uuid: '0190a0a0-0000-7000-8000-000000000004',
    timestampMs: Date.UTC(2026, 2, 1, 23, 59, 59, 999),
    event: 'other',
  }),
  anEvent({
    uuid: '0190a0a0-0000-7000-8000-000000000005',
    timestampMs: Date.UTC(2026, 2, 2),
    receivedAtUs: (noon + 7) * 1_000 + 999,
  }),
];

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
  await query.store('a', events);
});
afterAll(() => query.stop());

/** The last digits of the uuids that a query finds, in order. */
async function numbers(parameters: string): Promise<string> {
  const { status, body } = await query.get(`/events?${parameters}`);
  expect(status, JSON.stringify(body)).toBe(200);
  return body.results.map(({ uuid }) => String(uuid).at(-1)).join('');
}

test('without parameters the page holds the newest hundred events, newest first, with the total', async () => {
  const { status, body } = await query.get('/events');
  expect(status).toBe(200);
  expect(Object.keys(body)).toEqual(['limit', 'offset', 'results', 'nextCursor', 'total']);
  expect(body).toMatchObject({ limit: 100, offset: 0, total: 5, nextCursor: null });
  expect(await numbers('')).toBe('54321');
});

test('a record has every field, null for a missing identifier, and its JSON as it was stored', async () => {
  const properties = String.raw`{"n":1e+21,"z":-0,"big":9007199254740993,"a.b":{"a":{"b":null}},"__proto__":{},"s":"\ud800 \u0000 ü","":[]}`;
  const event = anEvent({
    uuid: randomUUID(),
    event: 'näme "q"',
    properties,
    traits: '{"b":1,"a":2}',
    receivedAtUs: noon * 1_000 + 1_999,
  });
  await query.store('b', [event]);
  const { text } = await query.get('/events', 'b');
  expect(text).toContain(
    `{"uuid":"${event.uuid}","type":"track","event":"näme \\"q\\"","userId":null,"groupId":null,"anonymousId":null,"instanceId":null,"properties":${properties},"context":{},"traits":{"b":1,"a":2},"timestamp":"2026-03-01T00:00:00.000Z","receivedAt":"2026-03-01T12:00:00.001Z","linkedUserId":null}`,
  );
});

test.each([
  ['userId=ada', '1'],
  ['groupId=acme', '2'],
  ['anonymousId=anon&instanceId=i-1', '3'],
  ['event=other', '4'],
  ['event=e&type=track', '5321'],
  ['type=page', ''],
  ['uuid=0190A0A0-0000-7000-8000-000000000003', '3'],
  ['uuid=00000000-0000-0000-0000-000000000000', ''],
  ['startDate=2026-03-01T12:00:00Z', '543'],
  ['endDate=2026-03-01T12:00:00.000', '321'],
  ['startDate=2026-03-01T12:00:00.001Z', '54'],
  ['startDate=2026-03-01T14:00:00%2B02:00&endDate=2026-03-01T13:00:00+01:00', '3'],
  ['startDate=2026-03-01&endDate=2026-03-01', '432'],
  ['startDate=2026-03-01', '5432'],
  ['endDate=2026-02-28', '1'],
  ['startDate=0001-01-01&endDate=9999-12-31', '54321'],
  ['orderByField=timestamp&orderByDirection=asc', '12345'],
  ['orderByField=userId&orderByDirection=Desc', '15432'],
  ['orderByField=receivedAt&orderByDirection=ASC', '12345'],
  ['limit=2', '54'],
  ['limit=2&offset=1', '43'],
  ['offset=9', ''],
  ['limit=5000', '54321'],
])('?%s finds %s', async (parameters, expected) => {
  expect(await numbers(parameters)).toBe(expected);
});

test.each(['1001', '99999999999999999999999999'])(
  'a limit of %s counts as 1,000, and the page says so',
  async (limit) => {
    expect((await query.get(`/events?limit=${limit}`)).body.limit).toBe(1_000);
  },
);

test('limit=0 returns the total without records', async () => {
  const { body } = await query.get('/events?limit=0&event=e');
  expect(body).toEqual({ limit: 0, offset: 0, total: 4, results: [], nextCursor: null });
});

test('total=none skips the count, total=exact is the default', async () => {
  expect((await query.get('/events?total=none')).body.total).toBeNull();
  expect((await query.get('/events?total=exact')).body.total).toBe(5);
  expect((await query.get('/events?limit=1&offset=3&endDate=2026-03-01')).body).toMatchObject({ total: 4, offset: 3 });
});

describe('refused with 400', () => {
  test.each([
    ['limit=-1', 'limit'],
    ['limit=1.5', 'limit'],
    ['limit=ten', 'limit'],
    ['limit=', 'limit'],
    ['limit=1&limit=2', 'limit'],
    ['offset=-1', 'offset'],
    ['offset=9007199254740993', 'offset'],
    ['uuid=123', 'uuid'],
    ['event=', 'event'],
    ['userId=', 'userId'],
    ['startDate=yesterday', 'startDate'],
    ['startDate=2026-02-30', 'startDate'],
    ['endDate=1772366400', 'endDate'],
    ['startDate=2026-03-02&endDate=2026-03-01', 'startDate'],
    ['orderByField=properties', 'orderByField'],
    ['orderByField=user_id', 'orderByField'],
    ['orderByDirection=up', 'orderByDirection'],
    ['total=maybe', 'total'],
    ['cursor=', 'cursor'],
    ['cursor=nonsense', 'cursor'],
    ['user=ada', 'user'],
    ['user_id=ada', 'user_id'],
    ['properties=1', 'properties'],
    ['properties.plan=', 'properties.plan'],
    ['properties.plan=1&properties.plan=2', 'properties.plan'],
    ['__proto__=1', '__proto__'],
    ['%00=1', '\0'],
    ['toString=1', 'toString'],
    ['userId=ada&userId=bob', 'userId'],
    ['userId=ada&userId[eq]=bob', 'userId[eq]'],
    ['userId[ne]=ada&userId[ne]=bob', 'userId[ne]'],
    ['properties.a[eq]=1&properties.a=1', 'properties.a'],
    ['userId[is]=ada', 'userId[is]'],
    ['userId[EQ]=ada', 'userId[EQ]'],
    ['properties.a[gte][is]=1', 'properties.a[gte][is]'],
    ['event[exists]=true', 'event[exists]'],
    ['type[exists]=true', 'type[exists]'],
    ['uuid[lt]=0190a0a0-0000-7000-8000-000000000003', 'uuid[lt]'],
    ['uuid[in]=0190a0a0-0000-7000-8000-000000000003,x', 'uuid[in]'],
    ['uuid[eq]=', 'uuid[eq]'],
    ['uuid[ne]=x', 'uuid[ne]'],
    ['limit[eq]=1', 'limit[eq]'],
    ['startDate[gte]=2026-03-01', 'startDate[gte]'],
    ['user[eq]=ada', 'user[eq]'],
    ['userId[]=ada', 'userId[]'],
    ['userId[in]=', 'userId[in]'],
    ['userId[in]=a\\b', 'userId[in]'],
    ['userId[in]=a\\', 'userId[in]'],
    ['userId[exists]=yes', 'userId[exists]'],
    ['userId[exists]=', 'userId[exists]'],
    ['userId[lt]=', 'userId[lt]'],
    ['properties.a[prefix]=', 'properties.a[prefix]'],
    ['properties.a[contains]=', 'properties.a[contains]'],
    ['properties.a[gt]=1e400', 'properties.a[gt]'],
    ['context.a=', 'context.a'],
    ['traits.a.b.c.d.e.f.g.h[ne]=1', 'traits.a.b.c.d.e.f.g.h[ne]'],
    [`userId[in]=${'a,'.repeat(100)}`, 'userId[in]'],
  ])('?%s', async (parameters, path) => {
    const { status, body } = await query.get(`/events?${parameters}`);
    expect(status).toBe(400);
    expect(body.code).toBe('invalid_request');
    expect(body.errors.map((error) => error.path)).toEqual([path]);
  });

  test('every error is named at once', async () => {
    const { status, body } = await query.get('/events?limit=x&offset=y&uuid=z&nope=1&startDate=s&event=');
    expect(status).toBe(400);
    expect(body.errors.map(({ path }) => path).sort()).toEqual([
      'event',
      'limit',
      'nope',
      'offset',
      'startDate',
      'uuid',
    ]);
  });

  test('errors of operators are named, too, and an unknown operator with the known ones', async () => {
    const { body } = await query.get(
      '/events?uuid[like]=x&userId[in]=a\\b&properties.a[least]=1&traits.b[exists]=1&context.c[prefix]=',
    );
    expect(body.errors.map(({ path, code, message }) => [path, code, message])).toEqual([
      ['uuid[like]', 'unknown_operator', 'unknown operator; use one of eq, ne, in'],
      ['userId[in]', 'custom', 'has a backslash that escapes nothing; write \\\\ for a backslash and \\, for a comma'],
      [
        'properties.a[least]',
        'unknown_operator',
        'unknown operator; use one of eq, ne, in, exists, lt, lte, gt, gte, prefix, contains',
      ],
      ['traits.b[exists]', 'invalid_value', 'must be true or false'],
      ['context.c[prefix]', 'too_small', 'must not be empty'],
    ]);
  });

  test.each([
    ['properties.a[gt]=1e400', 'is too large for a 64-bit float'],
    ['properties.a[gt]=-1e400', 'is too large for a 64-bit float'],
    [
      'properties.a[gt]=1729384756102938475',
      'has more digits than a 64-bit float holds; the nearest number is 1729384756102938400',
    ],
    ['nope=1', 'unknown parameter; /docs lists those of this path'],
    ['cursor=x', 'this cursor belongs to another query; repeat its filters and order'],
  ])('?%s, with the reason', async (parameters, message) => {
    expect((await query.get(`/events?${parameters}`)).body.errors).toMatchObject([{ message }]);
  });

  test.each(['event=%', 'event=%ff', '%e0%a4%a=1'])('?%s, which is not percent-encoded UTF-8', async (parameters) => {
    expect((await query.get(`/events?${parameters}`)).status).toBe(400);
  });

  test('more property filters than a query may have', async () => {
    const parameters = Array.from({ length: 21 }, (_, index) => `properties.p${index}=1`).join('&');
    expect((await query.get(`/events?${parameters}`)).body.errors).toMatchObject([{ path: 'properties' }]);
  });
});

describe('brackets in the name of a property are no operator, unless they are at its end and hold a word', () => {
  const stored = ['{"a[gte]":"x"}', '{"a[0]":"x"}', '{"a[b]":{"c[]":"x"}}'].map((properties) =>
    anEvent({ properties }),
  );

  beforeAll(() => query.store('c', stored));

  test.each([
    ['properties.a[gte][eq]=x', 0],
    ['properties.a[0]=x', 1],
    ['properties.a[b].c[]=x', 2],
  ])('?%s', async (parameters, index) => {
    const { body } = await query.get(`/events?${parameters}`, 'c');
    expect(body.results.map(({ uuid }) => uuid)).toEqual([stored[index]?.uuid]);
  });
});

test('the largest query that the limits allow succeeds', async () => {
  const names = Array.from({ length: 20 }, (_, index) => `properties.a.b.c.d.e.f.,1234567890123456789${index}`);
  const filters = names.map((name) => `${encodeURIComponent(name)}[ne]=${encodeURIComponent('\0')}`).join('&');
  const items = Array.from({ length: 100 }, (_, index) => `12345678901234567890${index}`).join(',');
  const fields = FILTER_FIELDS.filter((field) => field !== 'uuid');
  const ranges = fields.map((field) => `${field}[lte]=${'z'.repeat(100)}&${field}[ne]=x`).join('&');
  expect((await query.get(`/events?${filters}&${ranges}&cursor=`)).body.errors).toHaveLength(1);
  expect((await query.get(`/events?${filters}&${ranges}`)).status).toBe(200);
  const lists = names.map((name) => `${encodeURIComponent(name)}[in]=${items}`);
  expect((await query.get(`/events?${lists.join('&')}`)).status).toBe(200);
});

describe('a cursor', () => {
  const list = 'event=e&orderByField=userId&orderByDirection=ASC&limit=1';

  async function cursor(): Promise<string> {
    const { body } = await query.get(`/events?${list}`);
    return String(body.nextCursor);
  }

  test('continues its own list, with any limit', async () => {
    const next = await cursor();
    expect(await numbers(`${list}&cursor=${next}`)).toBe('3');
    expect(await numbers(`${list.replace('limit=1', 'limit=9')}&cursor=${next}`)).toBe('351');
  });

  test.each([
    ['other filters', 'event=other&orderByField=userId&orderByDirection=ASC'],
    ['fewer filters', 'orderByField=userId&orderByDirection=ASC'],
    ['one more property filter', `${list}&properties.a=1`],
    ['another order', 'event=e&orderByField=uuid&orderByDirection=ASC'],
    ['another direction', 'event=e&orderByField=userId&orderByDirection=DESC'],
    ['an offset', `${list}&offset=0`],
    ['another operator', `${list.replace('event=e', 'event[prefix]=e')}`],
    ['one more operator', `${list}&event[gte]=e`],
    ['a filter of another document', `${list}&traits.a[exists]=false`],
  ])('is refused with %s', async (_name, parameters) => {
    const { status, body } = await query.get(`/events?${parameters}&cursor=${await cursor()}`);
    expect(status).toBe(400);
    expect(body.errors).toHaveLength(1);
  });

  test('belongs to all operators and their values, in whatever order they come', async () => {
    const filters = ['event[in]=e,f', 'properties.a[ne]=1', 'traits.a[ne]=1', 'userId[ne]=bob', 'event=e'];
    const { body: page } = await query.get(`/events?limit=1&${filters.join('&')}`);
    const next = async (parameters: readonly string[]) =>
      (await query.get(`/events?limit=1&${parameters.join('&')}&cursor=${page.nextCursor}`)).status;
    expect(await next(filters.toReversed())).toBe(200);
    for (const [index, filter] of filters.entries()) {
      expect(await next(filters.toSpliced(index, 1)), filter).toBe(400);
      expect(await next(filters.toSpliced(index, 1, `${filter}x`)), filter).toBe(400);
    }
  });

  test('is refused in another workspace', async () => {
    expect((await query.get(`/events?${list}&cursor=${await cursor()}`, 'b')).status).toBe(400);
  });

  const altered = (alter: (content: unknown[]) => unknown) => (good: string) => {
    const content = JSON.parse(Buffer.from(good, 'base64url').toString()) as unknown[];
    return Buffer.from(JSON.stringify(alter(content))).toString('base64url');
  };

  test.each([
    { name: 'without a sort key', alter: altered(([hash]) => [hash]) },
    { name: 'with another value', alter: altered(([hash, , uuid, time]) => [hash, null, uuid, time]) },
    { name: 'with another uuid', alter: altered(([hash, value, , time]) => [hash, value, 'x', time]) },
    { name: 'with another time', alter: altered(([hash, value, uuid]) => [hash, value, uuid, 'now']) },
    { name: 'with one more element', alter: altered((content) => [...content, 1]) },
    { name: 'as an object', alter: altered((content) => ({ ...content })) },
    { name: 'as a text', alter: altered(() => 'text') },
    { name: 'with padding', alter: (good: string) => `${good}=` },
    { name: 'with a space', alter: (good: string) => `${good}%20` },
    { name: 'as a NUL', alter: () => '%00' },
  ])('is refused when it was altered: $name', async ({ alter }) => {
    expect((await query.get(`/events?${list}&cursor=${alter(await cursor())}`)).status).toBe(400);
  });
});
