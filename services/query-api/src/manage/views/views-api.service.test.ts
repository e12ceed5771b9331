import { randomUUID } from 'node:crypto';
import { WEBHOOKS_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { createDocumentChecker } from '@sluice/shared/testing/openapi';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { anEvent, type QueryService, startQuery } from '../../testing/query-service.ts';
import { send } from '../../testing/views.ts';
import {
  DASHBOARDS_MAX,
  LINKS_MAX,
  NAME_CHARACTERS_MAX,
  NOTE_CHARACTERS_MAX,
  PARAMETER_CHARACTERS_MAX,
  PARAMETERS_MAX,
  TILES_MAX,
  VIEW_BODY_BYTES_MAX,
  VIEWS_MAX,
} from './view.ts';

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), WEBHOOKS_ACCOUNT);
});
afterAll(() => query.stop());

const VIEW = { name: 'Sign-ups', report: 'series', parameters: { event: 'signed_up', range: '7d', timeZone: 'UTC' } };

/** Creates a view in a workspace, and returns its id. */
async function createView(workspace: string, given: object = {}): Promise<string> {
  const { status, body } = await send(query, 'POST', '/views', { ...VIEW, ...given }, workspace);
  expect([status, body.code]).toEqual([201, undefined]);
  return body.id;
}

async function createDashboard(workspace: string, views: readonly string[]): Promise<string> {
  const tiles = views.map((view) => ({ view, width: 1 }));
  return (await send(query, 'POST', '/dashboards', { name: 'Morning', tiles }, workspace)).body.id;
}

test('a view is saved, listed for everybody of the workspace, changed and deleted', async () => {
  const created = await send(query, 'POST', '/views', VIEW);
  expect([created.status, created.body]).toMatchObject([201, VIEW]);
  expect((await send(query, 'GET', '/views')).body).toEqual({ views: [created.body], limit: 1_000, nextCursor: null });
  const path = `/views/${created.body.id}`;
  expect((await send(query, 'PATCH', path, { name: ' 🚀 مرحبا ' })).body).toMatchObject({ ...VIEW, name: '🚀 مرحبا' });
  const funnel = { report: 'funnel', parameters: { steps: 'a,b', range: '24h', form: 'bar' } };
  expect((await send(query, 'PATCH', path, funnel)).body).toMatchObject({ ...funnel, name: '🚀 مرحبا' });
  expect((await send(query, 'GET', path.toUpperCase().replace('VIEWS', 'views'))).body).toMatchObject(funnel);
  expect((await send(query, 'DELETE', path)).status).toBe(204);
  for (const method of ['GET', 'PATCH', 'DELETE'] as const) {
    expect((await send(query, method, path, method === 'PATCH' ? {} : undefined)).status).toBe(404);
  }
  expect((await send(query, 'GET', '/views')).body).toMatchObject({ views: [] });
});

test('a view filters and groups by what users and organizations have', async () => {
  const parameters = {
    'organization.properties.plan[in]': 'pro,team',
    'user.firstSeenAt[gte]': '2026-03-01',
    groupBy: 'user.properties.country',
  };
  const created = await send(query, 'POST', '/views', { ...VIEW, parameters }, 'h');
  expect([created.status, created.body]).toMatchObject([201, { parameters }]);
});

test.each<[object, readonly string[]]>([
  [{}, ['name', 'report']],
  [{ ...VIEW, name: '  ' }, ['name']],
  [{ ...VIEW, report: 'export' }, ['report']],
  [{ ...VIEW, colour: 'red' }, ['colour']],
  [{ ...VIEW, parameters: { event: ['a'] } }, ['parameters.event']],
  [{ ...VIEW, parameters: { workspaceId: 'b' } }, ['parameters.workspaceId']],
  [
    { ...VIEW, parameters: { range: '30 days', form: 'pie', timeZone: 'Mars/Base', colour: 'red', 'event[x]': 'y' } },
    ['parameters.range', 'parameters.form', 'parameters.timeZone', 'parameters.colour', 'parameters.event[x]'],
  ],
  [
    { ...VIEW, parameters: { 'organization.plan': 'pro', 'user.firstSeenAt': '2026-03-01' } },
    ['parameters.organization.plan', 'parameters.user.firstSeenAt'],
  ],
  [{ ...VIEW, parameters: { startDate: '2026-02-30' } }, ['parameters.startDate']],
  [{ ...VIEW, parameters: { startDate: '2026-02-02', endDate: '2026-02-01' } }, ['parameters.startDate']],
  [{ ...VIEW, report: 'funnel', parameters: { returnEvent: 'a' } }, ['parameters.returnEvent', 'parameters.steps']],
  [{ ...VIEW, report: 'values', parameters: {} }, ['parameters.property']],
  [{ ...VIEW, report: 'retention', parameters: { interval: 'minute' } }, ['parameters.interval']],
])('of %j each error is named', async (given, paths) => {
  const { status, body, paths: named } = await send(query, 'POST', '/views', given);
  expect([status, body.code]).toEqual([400, 'invalid_request']);
  expect([...named].sort()).toEqual([...paths].sort());
});

test('a dashboard has views in an order, with their widths', async () => {
  const [first, second] = [await createView('b'), await createView('b', { name: 'Other' })];
  const tiles = [
    { view: second, width: 2 },
    { view: first, width: 1 },
  ];
  const created = await send(query, 'POST', '/dashboards', { name: 'Morning', tiles }, 'b');
  expect(created).toMatchObject({ status: 201, body: { name: 'Morning', tiles } });
  const path = `/dashboards/${created.body.id}`;
  expect((await send(query, 'GET', '/dashboards', undefined, 'b')).body).toMatchObject({ dashboards: [{ tiles }] });
  const turned = await send(query, 'PATCH', path, { tiles: tiles.toReversed() }, 'b');
  expect(turned.body).toMatchObject({ name: 'Morning', tiles: [{ name: 'Sign-ups' }, { name: 'Other' }] });
  await send(query, 'DELETE', `/views/${first}`, undefined, 'b');
  const shown = await send(query, 'GET', path, undefined, 'b');
  expect(shown.body).toMatchObject({ tiles: [{ view: first, name: null, report: null }, { name: 'Other' }] });
  expect((await send(query, 'GET', `${path}/tiles/${first}`, undefined, 'b')).status).toBe(404);
  // The tile of the deleted view may stay, and move.
  expect((await send(query, 'PATCH', path, { tiles }, 'b')).status).toBe(200);
  expect((await send(query, 'PATCH', path, { name: 'Evening' }, 'b')).body).toMatchObject({ name: 'Evening', tiles });
  expect((await send(query, 'DELETE', path, undefined, 'b')).status).toBe(204);
  expect((await send(query, 'GET', path, undefined, 'b')).status).toBe(404);
});

test('a tile must be a view of the workspace, once', async () => {
  const [own, other] = [await createView('c'), await createView('d')];
  const tilesOf = (...views: readonly string[]) => views.map((view) => ({ view, width: 1 }));
  const refused = async (tiles: readonly object[]) =>
    (await send(query, 'POST', '/dashboards', { name: 'Morning', tiles }, 'c')).paths;
  expect(await refused(tilesOf(own, other, randomUUID()))).toEqual(['tiles.1.view', 'tiles.2.view']);
  expect(await refused(tilesOf(own, own.toUpperCase()))).toEqual(['tiles.1.view']);
  expect(await refused([{ view: 'x', width: 3 }])).toEqual(['tiles.0.view', 'tiles.0.width']);
});

test('a tile responds as the report of its view, with the range of now', async () => {
  const now = Date.now();
  const event = (event: string, agoMs: number, properties = '{}') =>
    anEvent({ event, timestampMs: now - agoMs, userId: 'jane', properties });
  await query.store('e', [event('a', 2_000, '{"plan":"pro"}'), event('b', 1_000), event('a', 40 * 86_400_000)]);
  const viewOf = (report: string, parameters: object) => createView('e', { report, parameters });
  const views = [
    await viewOf('series', { event: 'a', range: '24h', interval: 'none', form: 'number', markers: 'deployed' }),
    await viewOf('funnel', { steps: 'a,b', timeZone: 'Europe/Berlin' }),
    await viewOf('retention', { range: '7d' }),
    await viewOf('values', { property: 'properties.plan', range: '30d', timeZone: 'Europe/Berlin' }),
  ];
  const id = await createDashboard('e', views);
  const bodies = await Promise.all(
    views.map(async (view) => (await send(query, 'GET', `/dashboards/${id}/tiles/${view}`, undefined, 'e')).body),
  );
  expect(bodies).toMatchObject([
    { total: 1, interval: 'none' },
    {
      steps: [
        { event: 'a', count: 1 },
        { event: 'b', count: 1 },
      ],
    },
    { interval: 'day', cohorts: expect.any(Array) },
    { results: [{ value: 'pro', count: 1 }] },
  ]);
  expect((await send(query, 'GET', `/dashboards/${id}/tiles/${randomUUID()}`, undefined, 'e')).status).toBe(404);
  // One range for all, whatever interval and dates a view has.
  const dated = await viewOf('series', {
    event: 'a',
    interval: 'minute',
    startDate: '2019-01-01',
    endDate: '2019-01-02',
  });
  const wide = `/dashboards/${await createDashboard('e', [dated])}/tiles/${dated}`;
  expect((await send(query, 'GET', wide, undefined, 'e')).body).toMatchObject({ total: 0, interval: 'minute' });
  const ranged = await send(query, 'GET', `${wide}?range=12m`, undefined, 'e');
  expect(ranged.body).toMatchObject({ total: 2, interval: 'month' });
  expect((await send(query, 'GET', `${wide}?range=year&endDate=2020-01-01`, undefined, 'e')).paths).toEqual([
    ...['range', 'endDate'],
  ]);
});

test('a tile is a note in place of a view, and each fault of it is named', async () => {
  const view = await createView('c');
  const note = 'Growth\nasked every Monday, <b>مرحبا</b>';
  const tiles = [
    { note, width: 2 },
    { view, width: 1 },
    { note, width: 1 },
  ];
  const created = await send(query, 'POST', '/dashboards', { name: 'Noted', tiles }, 'c');
  const nothing = { name: null, report: null, form: null };
  expect([created.status, created.body]).toMatchObject([
    201,
    { tiles: [{ ...tiles[0], view: null, ...nothing }, { view, note: null, name: 'Sign-ups' }, {}] },
  ]);
  const path = `/dashboards/${created.body.id}`;
  expect((await send(query, 'GET', path, undefined, 'c')).body).toEqual(created.body);
  expect((await send(query, 'GET', '/dashboards', undefined, 'c')).body).toMatchObject({
    dashboards: expect.arrayContaining([expect.objectContaining({ tiles })]),
  });
  const wrong = [
    { width: 1 },
    { note: ' ', width: 1 },
    { note: 'x'.repeat(NOTE_CHARACTERS_MAX + 1), width: 1 },
    { note: 'x', view, width: 1 },
    { note: 'x'.repeat(NOTE_CHARACTERS_MAX), width: 3 },
    { note: ['x'], width: 1, colour: 'red' },
  ];
  expect((await send(query, 'PATCH', path, { tiles: wrong }, 'c')).paths.toSorted()).toEqual([
    ...['tiles.0', 'tiles.1.note', 'tiles.2.note', 'tiles.3', 'tiles.4.width', 'tiles.5.colour', 'tiles.5.note'],
  ]);
});

test('what another workspace has is not found', async () => {
  const view = await createView('f');
  const dashboard = await createDashboard('f', [view]);
  for (const path of [`/views/${view}`, `/dashboards/${dashboard}`]) {
    for (const method of ['GET', 'PATCH', 'DELETE'] as const) {
      const response = await send(query, method, path, method === 'PATCH' ? { name: 'mine' } : undefined, 'g');
      expect([method, path, response.status]).toEqual([method, path, 404]);
    }
  }
  expect((await send(query, 'GET', `/dashboards/${dashboard}/tiles/${view}`, undefined, 'g')).status).toBe(404);
  for (const [method, path] of [
    ['GET', 'links'],
    ['POST', 'links'],
    ['DELETE', `links/${view}`],
  ] as const) {
    const payload = method === 'POST' ? { name: 'x' } : undefined;
    expect((await send(query, method, `/dashboards/${dashboard}/${path}`, payload, 'admin-g')).status).toBe(404);
    expect((await send(query, method, `/dashboards/${dashboard}/${path}`, payload, 'f')).body.code).toBe(
      'missing_scope',
    );
  }
});

test('of changes at once one counts, and a deleted view stays deleted', async () => {
  const id = await createView('h');
  const names = ['one', 'two', 'three', 'four'];
  await Promise.all(names.map((name) => send(query, 'PATCH', `/views/${id}`, { name }, 'h')));
  expect(names).toContain((await send(query, 'GET', `/views/${id}`, undefined, 'h')).body['name']);
  await Promise.all([
    send(query, 'DELETE', `/views/${id}`, undefined, 'h'),
    ...names.map((name) => send(query, 'PATCH', `/views/${id}`, { name }, 'h')),
  ]);
  expect((await send(query, 'GET', `/views/${id}`, undefined, 'h')).status).toBe(404);
});

test('each limit: at it, a document is saved, and beyond it, it is refused', async () => {
  const errorsOf = async (given: object) => (await send(query, 'POST', '/views', { ...VIEW, ...given }, 'd')).paths;
  expect(await errorsOf({ name: 'x'.repeat(NAME_CHARACTERS_MAX) })).toEqual([]);
  expect(await errorsOf({ name: 'x'.repeat(NAME_CHARACTERS_MAX + 1) })).toEqual(['name']);
  expect(await errorsOf({ parameters: { event: 'x'.repeat(PARAMETER_CHARACTERS_MAX) } })).toEqual([]);
  expect(await errorsOf({ parameters: { event: 'x'.repeat(PARAMETER_CHARACTERS_MAX + 1) } })).toEqual([
    'parameters.event',
  ]);
  const many = (count: number) => ({
    parameters: Object.fromEntries(Array.from({ length: count }, (_, index) => [`colour${index}`, 'x'])),
  });
  expect(await errorsOf(many(PARAMETERS_MAX))).not.toContain('parameters');
  expect(await errorsOf(many(PARAMETERS_MAX + 1))).toEqual(['parameters']);
  const headers = { authorization: 'Bearer d', 'content-type': 'application/json' };
  const post = { method: 'POST', url: '/views', headers } as const;
  const bodyOf = (bytes: number) => ({ ...post, payload: JSON.stringify(VIEW).padEnd(bytes, ' ') });
  expect((await query.app.inject(bodyOf(VIEW_BODY_BYTES_MAX))).statusCode).toBe(201);
  expect((await query.app.inject(bodyOf(VIEW_BODY_BYTES_MAX + 1))).json()).toMatchObject({ code: 'body_too_large' });
  const tiles = Array.from({ length: TILES_MAX + 1 }, () => ({ view: randomUUID(), width: 1 }));
  expect((await send(query, 'POST', '/dashboards', { name: 'x', tiles }, 'd')).paths).toEqual(['tiles']);
});

test.each([
  ['view', 'views', VIEWS_MAX, { ...VIEW }, 'g'],
  ['dashboard', 'dashboards', DASHBOARDS_MAX, { name: 'x' }, 'g'],
])(
  'a workspace has no more of each %s than it may have, also when they are created at once',
  async (kind, plural, max, given, workspace) => {
    await query.insert(
      'console_documents',
      Array.from({ length: max - 2 }, () => ({
        ...{ kind, workspace_id: workspace, id: randomUUID(), created_at: 1e12, is_deleted: false },
        content: JSON.stringify(kind === 'view' ? VIEW : { name: 'x', tiles: [] }),
      })),
    );
    const statuses = await Promise.all(
      [1, 2, 3, 4].map(async () => (await send(query, 'POST', `/${plural}`, given, workspace)).status),
    );
    expect(statuses.sort()).toEqual([201, 201, 400, 400]);
    expect((await send(query, 'POST', `/${plural}`, given, workspace)).paths).toEqual([plural]);
  },
);

test('a dashboard has no more links than it may have', async () => {
  const [one, other] = [await createDashboard('b', []), await createDashboard('b', [])];
  const statuses = await Promise.all(
    Array.from({ length: LINKS_MAX + 2 }, async () => {
      return (await send(query, 'POST', `/dashboards/${one}/links`, { name: 'x' }, 'admin-b')).status;
    }),
  );
  expect(statuses.filter((status) => status === 201).length).toBe(LINKS_MAX);
  expect((await send(query, 'POST', `/dashboards/${other}/links`, { name: 'x' }, 'admin-b')).status).toBe(201);
});

test('the responses are as documented', async () => {
  const checker = createDocumentChecker((await query.app.inject('/openapi.json')).json());
  const view = await createView('a');
  const tiles = [
    { view, width: 1 },
    { note: 'x', width: 2 },
  ];
  const dashboard = `/dashboards/${(await send(query, 'POST', '/dashboards', { name: 'x', tiles }, 'a')).body.id}`;
  const link = (await send(query, 'POST', `${dashboard}/links`, { name: 'Screen' }, 'admin-a')).body.id;
  for (const [operation, url, payload, key] of [
    ['POST /views', '/views', VIEW, 'a'],
    ['POST /views', '/views', {}, 'a'],
    ['GET /views', '/views', undefined, 'a'],
    ['GET /views/{id}', `/views/${view}`, undefined, 'a'],
    ['GET /views/{id}', '/views/nothing', undefined, 'a'],
    ['PATCH /views/{id}', `/views/${view}`, { name: 'Other' }, 'a'],
    ['POST /dashboards', '/dashboards', { name: 'x' }, 'a'],
    ['GET /dashboards', '/dashboards', undefined, 'a'],
    ['GET /dashboards/{id}', dashboard, undefined, 'a'],
    ['PATCH /dashboards/{id}', dashboard, { name: 'Other' }, 'a'],
    ['GET /dashboards/{id}/tiles/{view}', `${dashboard}/tiles/${view}`, undefined, 'a'],
    ['GET /dashboards/{id}/tiles/{view}', `${dashboard}/tiles/${view}?range=7d`, undefined, 'a'],
    ['GET /dashboards/{id}/links', `${dashboard}/links`, undefined, 'admin-a'],
    ['POST /dashboards/{id}/links', `${dashboard}/links`, { name: 'x' }, 'admin-a'],
    ['POST /dashboards/{id}/links', `${dashboard}/links`, { name: 'x' }, 'a'],
    ['DELETE /dashboards/{id}/links/{link}', `${dashboard}/links/${link}`, undefined, 'admin-a'],
    ['DELETE /views/{id}', `/views/${view}`, undefined, 'a'],
    ['GET /dashboards/{id}', dashboard, undefined, 'a'],
    ['GET /dashboards/{id}/tiles/{view}', `${dashboard}/tiles/${view}`, undefined, 'a'],
    ['DELETE /dashboards/{id}', dashboard, undefined, 'a'],
  ] as const) {
    const [method] = operation.split(' ') as ['GET'];
    const headers = { authorization: `Bearer ${key}` };
    const response = await query.app.inject({ method, url, headers, ...(payload && { payload }) });
    expect([operation, response.statusCode < 500]).toEqual([operation, true]);
    // There is nothing to describe of a 204.
    if (response.statusCode === 204) continue;
    expect(checker.errorsOfResponse(operation, response), response.body).toBeUndefined();
  }
});

test('where query-api can store nothing, they are off and say so', async () => {
  const off = await startQuery(inject('clickhouseUrl'));
  try {
    for (const path of ['/views', '/dashboards', '/dashboards/x']) {
      expect(await send(off, 'GET', path)).toMatchObject({ status: 501, body: { code: 'views_not_available' } });
    }
  } finally {
    await off.stop();
  }
});

test('where a workspace can be read without a key, views are read but not changed without one', async () => {
  const open = await startQuery(inject('clickhouseUrl'), { ...WEBHOOKS_ACCOUNT, QUERY_ANONYMOUS_WORKSPACE: 'a' });
  try {
    expect((await send(open, 'POST', '/views', VIEW, '')).status).toBe(401);
    const { id } = (await send(open, 'POST', '/views', VIEW)).body;
    expect((await send(open, 'GET', `/views/${id}`, undefined, '')).status).toBe(200);
    for (const method of ['PATCH', 'DELETE'] as const) {
      const payload = method === 'PATCH' ? {} : undefined;
      expect((await send(open, method, `/views/${id}`, payload, '')).status).toBe(401);
    }
  } finally {
    await open.stop();
  }
});
