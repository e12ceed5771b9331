import { WEBHOOKS_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { createDocumentChecker } from '@sluice/shared/testing/openapi';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { aRegister, type QueryService, startQuery } from '../../testing/query-service.ts';
import { send } from '../../testing/views.ts';

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), WEBHOOKS_ACCOUNT);
});
afterAll(() => query.stop());

type Properties = Readonly<Record<string, unknown>>;

/** Stores users or organizations as they are at a version, which is later for each. */
async function know(workspace: string, kind: string, known: Record<string, Properties>, first = 1): Promise<void> {
  const all = Object.entries(known).map(([id, properties], index) => {
    const common = { workspace_id: workspace, kind, id };
    const version = first + index;
    const rows = Object.entries(properties).map(([property, value]) => {
      return { ...common, property, register: aRegister(version, 'set', JSON.stringify(value)) };
    });
    return { entity: { ...common, other_id: '', first_seen_at: 1, last_seen_at: version, version }, rows };
  });
  await query.insert(
    'entities',
    all.map(({ entity }) => entity),
  );
  await query.insert(
    'entity_properties',
    all.flatMap(({ rows }) => rows),
  );
}

interface Named {
  readonly id: string;
  readonly name: string | null;
  readonly email: string | null;
}

interface Found {
  readonly users: readonly Named[];
  readonly organizations: readonly Named[];
  readonly complete: boolean;
}

const get = async (path: string, workspace: string) => (await query.get(path, workspace)).body as unknown as Found;

const search = async (text: string, workspace: string) => {
  const { users, organizations, complete } = await get(`/search?q=${encodeURIComponent(text)}`, workspace);
  return { users: users.map(({ id }) => id), organizations: organizations.map(({ id }) => id), complete };
};

const put = (body: object, workspace: string, key = `admin-${workspace}`) =>
  send(query, 'PUT', '/names/properties', body, key);

test('names and e-mail addresses are those of the usual properties, or of those that the workspace says', async () => {
  await know('a', 'user', {
    u1: { name: 'Ann Lee', full_name: 'Another', email: 'ann@example.com', plan: 'pro' },
    u2: { first_name: 'Bo', last_name: 'Ek', name: '  ' },
    u3: { name: 12, nick: 'cleo', mail: { work: 'c' } },
  });
  await know('a', 'organization', { u1: { name: 'Acme' } });
  const path = '/names?users=u1,u2,u3,nobody&organizations=u1,u2';
  const byId = ({ users, organizations }: Found) => ({
    users: users.toSorted((one, other) => (one.id < other.id ? -1 : 1)),
    organizations,
  });
  expect(byId(await get(path, 'a'))).toEqual({
    users: [
      { id: 'u1', name: 'Ann Lee', email: 'ann@example.com' },
      { id: 'u2', name: 'Bo Ek', email: null },
    ],
    organizations: [{ id: 'u1', name: 'Acme', email: null }],
  });
  expect((await put({ users: { name: [['nick'], ['full_name']], email: [] } }, 'a')).status).toBe(200);
  expect(byId(await get(path, 'a'))).toEqual({
    users: [
      { id: 'u1', name: 'Another', email: null },
      { id: 'u3', name: 'cleo', email: null },
    ],
    organizations: [{ id: 'u1', name: 'Acme', email: null }],
  });
  expect((await get('/names?users=u1', 'b')).users).toEqual([]);
  // The same change again, and the default again.
  expect((await put({}, 'a')).status).toBe(200);
  expect((await get('/names?users=u1', 'a')).users).toEqual([{ id: 'u1', name: 'Ann Lee', email: 'ann@example.com' }]);
});

test('of changes at once one counts, and a change counts also when the one before was dated by a clock that was ahead', async () => {
  const namings = ['one', 'two', 'three', 'four'].map((name) => ({ users: { name: [[name]], email: [] } }));
  const shown = async () => (await query.get('/names/properties', 'g')).body;
  const responses = await Promise.all(namings.map((naming) => put(naming, 'g')));
  expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  expect(namings.map(({ users }) => users)).toContainEqual(((await shown()) as unknown as { users: unknown }).users);
  const [first, second] = namings;
  const dated = { kind: 'naming', workspace_id: 'g', id: '00000000-0000-4000-8000-000000000000', is_deleted: false };
  const later = { created_at: Date.now(), changed_at: (Date.now() + 3_600_000) * 1_000 };
  await query.insert('console_documents', [{ ...dated, ...later, content: JSON.stringify(first) }]);
  expect((await put(second ?? {}, 'g')).status).toBe(200);
  expect(await shown()).toMatchObject(second ?? {});
});

test('a search finds identifiers by their beginning, and names and addresses by words in any case', async () => {
  await know('c', 'user', {
    'u-1': { name: 'Zoë "Z" Ångström', email: 'zoe@Example.com' },
    'u-2': { firstName: 'Ann', lastName: 'Lee', email: 'ann@example.com' },
    ann: {},
    'u-3': { name: 'Joann', email: 'jo@example.com' },
  });
  await know('c', 'organization', { 'o-1': { name: 'Annual, Inc. {x}', plan: 'pro' } });
  const complete = true;
  expect(await search('ANN@example.com', 'c')).toEqual({ users: ['u-2'], organizations: [], complete });
  // The identifier is equal, a name begins with it, another one has it in it.
  expect(await search(' ann ', 'c')).toEqual({ users: ['ann', 'u-2', 'u-3'], organizations: ['o-1'], complete });
  expect(await search('lee ann', 'c')).toMatchObject({ users: ['u-2'] });
  expect(await search('"z" ÅNG', 'c')).toMatchObject({ users: ['u-1'] });
  expect(await search('annual, inc. {X}', 'c')).toMatchObject({ users: [], organizations: ['o-1'] });
  expect(await search('u-', 'c')).toMatchObject({ users: ['u-3', 'u-2', 'u-1'] });
  for (const text of ['pro', 'nn@%']) expect((await search(text, 'c')).users).toEqual([]);
  expect((await search('ann', 'd')).users).toEqual([]);
});

test('a search says when others match, and has what counts now alone', async () => {
  const numbers = [0, 1, 2, 3, 4];
  await know('e', 'user', Object.fromEntries(numbers.map((number) => [`many-${number}`, { name: `Sam ${number}` }])));
  expect(await get('/search?q=sam&limit=2', 'e')).toMatchObject({ complete: false, users: [{ id: 'many-4' }, {}] });
  expect(await get('/search?q=sam&limit=5', 'e')).toMatchObject({ complete: true });
  await know('e', 'user', { 'many-0': { name: 'Renamed' } }, 10);
  expect((await search('sam 0', 'e')).users).toEqual([]);
  await query.insert('user_deletions', [{ workspace_id: 'e', user_id: 'many-1', version: 100 }]);
  for (const text of ['sam 1', 'many-1']) expect((await search(text, 'e')).users).toEqual([]);
  expect((await get('/names?users=many-1,many-2', 'e')).users).toMatchObject([{ id: 'many-2' }]);
});

test('what is wrong is named, whole, and only the scope admin says what names are', async () => {
  const errorsOf = async (path: string) => {
    const { status, body } = await query.get(path, 'f');
    return [status, ...body.errors.map(({ path: at, message }) => `${at} ${message}`)];
  };
  expect(await errorsOf('/search?limit=51&x=1')).toEqual([
    400,
    'q is required',
    'limit must be a whole number from 1 to 50',
    'x unknown parameter; /docs lists those of this path',
  ]);
  expect(await errorsOf(`/search?q=${'x'.repeat(201)}`)).toEqual([400, 'q must have at most 200 characters']);
  expect(await errorsOf('/search?q=%20')).toEqual([400, 'q must not be empty']);
  const many = Array.from({ length: 101 }, (_, index) => index).join(',');
  expect(await errorsOf(`/names?users=${many}&organizations=`)).toEqual([
    400,
    'users must have at most 100 items',
    'organizations must not be empty',
  ]);
  const wrong = { users: { name: [[], ['a', 'b', 'c', 'd']], email: [''] }, teams: {} };
  const { status, paths } = await put(wrong, 'f');
  expect([status, paths.toSorted()]).toEqual([400, ['teams', 'users.email.0', 'users.name.0', 'users.name.1']]);
  expect((await put({}, 'f', 'f')).status).toBe(403);
});

test('responses are those of the OpenAPI document', async () => {
  const checker = createDocumentChecker((await query.app.inject('/openapi.json')).json());
  await know('g', 'user', { u1: { name: 'Ann' } });
  for (const [operation, url, payload, key] of [
    ['GET /names', '/names?users=u1', undefined, 'g'],
    ['GET /search', '/search?q=ann', undefined, 'g'],
    ['GET /search', '/search', undefined, 'g'],
    ['GET /names/properties', '/names/properties', undefined, 'g'],
    ['PUT /names/properties', '/names/properties', { organizations: { name: [['title']] } }, 'admin-g'],
    ['PUT /names/properties', '/names/properties', { users: 1 }, 'admin-g'],
    ['PUT /names/properties', '/names/properties', {}, 'g'],
  ] as const) {
    const [method] = operation.split(' ') as ['GET'];
    const headers = { authorization: `Bearer ${key}` };
    const response = await query.app.inject({ method, url, headers, ...(payload && { payload }) });
    expect(response.statusCode).toBeLessThan(500);
    expect(checker.errorsOfResponse(operation, response), response.body).toBeUndefined();
  }
});
