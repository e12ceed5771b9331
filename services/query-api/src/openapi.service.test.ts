import type { OpenApiDocument } from '@sluice/shared/http/openapi';
import { PROBLEMS } from '@sluice/shared/http/problem';
import {
  createDocumentChecker,
  type DocumentChecker,
  errorsOfDocument,
  routesOf,
  withoutNames,
} from '@sluice/shared/testing/openapi';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { entitiesParameters, entityParameters } from './records/entities/entities-parameters.ts';
import { eventParameters } from './records/events/events-parameters.ts';
import { exportParameters } from './reports/export/export-parameters.ts';
import { seriesParameters } from './reports/series/series-parameters.ts';
import { streamParameters } from './stream/stream-parameters.ts';
import { encodePosition, endOfBlock } from './stream/stream-position.ts';
import { anEvent, aRegister, eachIdentifier, type QueryService, startQuery } from './testing/query-service.ts';

let query: QueryService;
let document: OpenApiDocument;
let checker: DocumentChecker;
let routes: ReadonlySet<string>;

beforeAll(async () => {
  routes = await routesOf(async () => {
    query = await startQuery(inject('clickhouseUrl'), { QUERY_TIMEOUT_MS: '12345' });
    return query.app;
  });
  document = (await query.app.inject('/openapi.json')).json();
  checker = createDocumentChecker(document);
  await query.store('a', [
    anEvent({
      ...eachIdentifier('i'),
      event: 'e',
      userId: 'u',
      properties: '{"plan":"pro"}',
    }),
    anEvent({ event: 'e', properties: '{"plan":"pro"}' }),
  ]);
  for (const kind of ['user', 'organization']) {
    for (const id of ['jane', 'john']) {
      const entity = { workspace_id: 'a', kind, id };
      await query.insert('entities', [{ ...entity, first_seen_at: 1e12, last_seen_at: 2e12, version: 5 }]);
      await query.insert('entity_properties', [
        { ...entity, property: 'plan', register: aRegister(5, 'set', '"pro"') },
      ]);
    }
  }
});
afterAll(() => query.stop());

test('the document is OpenAPI 3.1, and its examples fit its schemas', async () => {
  expect(await errorsOfDocument(document)).toBeUndefined();
  const { count, errors } = checker.examples();
  expect(errors).toEqual([]);
  expect(count).toBeGreaterThan(30);
});

test('it describes every route, and no other', () => {
  const documented = [...checker.operations.keys()].map(withoutNames);
  const head = documented.filter((route) => route.startsWith('GET')).map((route) => route.replace('GET', 'HEAD'));
  expect([...routes].sort()).toEqual([...documented, ...head].sort());
});

test('it describes every parameter, and no other', () => {
  const named = (operation: string) => {
    const parameters = checker.operations.get(operation)?.value['parameters'];
    return (parameters as { in?: string; name?: string }[]).filter((one) => one.in === 'query').map(({ name }) => name);
  };
  const documents = ['properties', 'context', 'traits', 'userProperties', 'organizationProperties', 'operators'];
  expect(named('GET /events')).toEqual([...Object.keys(eventParameters), ...documents]);
  expect(named('GET /events/stream')).toEqual([...Object.keys(streamParameters), ...documents]);
  expect(named('GET /events/series')).toEqual([...Object.keys(seriesParameters), ...documents]);
  expect(named('GET /events/export')).toEqual([...Object.keys(exportParameters), ...documents]);
  for (const path of ['/users', '/organizations']) {
    expect(named(`GET ${path}`)).toEqual([...Object.keys(entitiesParameters), 'properties', 'segments']);
  }
  for (const operation of ['GET /users/{foreignId}', 'GET /organizations/{foreignUserGroupId}']) {
    expect(named(operation)).toEqual(Object.keys(entityParameters));
  }
});

test.each([
  ['GET /events', 'properties', 'properties.a[lt]', 'context.a'],
  ['GET /events', 'context', 'context.a', 'properties.a'],
  ['GET /events', 'traits', 'traits.', 'trait.a'],
  ['GET /events', 'operators', 'userId[exists]', 'event[exists]'],
  ['GET /events', 'operators', 'uuid[in]', 'uuid[lt]'],
  ['GET /users', 'properties', 'properties.a[b][eq]', 'userId[in]'],
  ['GET /users', 'segments', 'segment[ne]', 'segment[lt]'],
  ['GET /events/funnel', 'stepSegments', 'step2.segment[in]', 'step2.segments'],
])('%s: the names of its %s can be %s, and not %s', (operation, parameter, good, bad) => {
  const { pointer, value } = checker.operations.get(operation) as { pointer: string; value: { parameters?: unknown } };
  const index = (value.parameters as { name?: string }[]).findIndex(({ name }) => name === parameter);
  const schema = `${pointer}/parameters/${index}/schema`;
  expect(checker.errors(schema, { [good]: 'x' })).toBeUndefined();
  expect(checker.errors(schema, { [bad]: 'x' })).toBeDefined();
});

test('it describes every code except those of ingest-api', () => {
  const others = ['body_too_slow', 'clock_skewed', 'invalid_api_key'];
  const codes = Object.keys(PROBLEMS).filter((code) => !others.includes(code));
  expect(Object.keys(document.components?.examples ?? {}).sort()).toEqual(codes.sort());
  for (const code of codes) expect(document.info.description).toContain(`\`${code}\``);
});

test('it names the limits that are in force, and whether a key is needed', async () => {
  expect(document.info.description).toContain('12,345 ms');
  expect(checker.operations.get('GET /events')?.value['security']).toEqual([{ apiKey: ['query'] }]);
  const open = await startQuery(inject('clickhouseUrl'), { QUERY_ANONYMOUS_WORKSPACE: 'secret-name' });
  try {
    const { body } = await open.app.inject('/openapi.json');
    expect(body).toContain('"security":[{"apiKey":["query"]},{}]');
    expect(body).not.toContain('secret-name');
  } finally {
    await open.stop();
  }
});

test.each([
  ['GET /events', '/events?limit=1&properties.plan=pro'],
  ['GET /events', '/events?limit=1&userId[in]=u,v&context.plan[exists]=false'],
  ['GET /events', '/events?total=capped'],
  ['GET /events', '/events?limit=1&identity=raw'],
  ['GET /users', '/users?limit=1&properties.plan=pro'],
  ['GET /users/{foreignId}', '/users/jane'],
  ['GET /users/{foreignId}', '/users/jane?propertyTimes=true'],
  ['GET /organizations', '/organizations?limit=1'],
  ['GET /organizations/{foreignUserGroupId}', '/organizations/jane'],
])('the response of %s is as documented, without a field that is not', async (operation, url) => {
  const response = await query.app.inject({ url, headers: { authorization: 'Bearer a' } });
  expect(response.statusCode).toBe(200);
  expect(checker.errorsOfResponse(operation, response)).toBeUndefined();
  const body = response.json();
  const fieldsOf = (name: string) => {
    const schemas = document.components?.schemas as Record<string, { properties?: object }> | undefined;
    return Object.keys(schemas?.[name]?.properties ?? {});
  };
  const [, name = ''] = /^\/(event|user|organization)/.exec(url) ?? [];
  const schema = `${name[0]?.toUpperCase()}${name.slice(1)}`;
  const record = 'results' in body ? body.results[0] : body;
  const absent = [
    ...(url.includes('propertyTimes') ? [] : ['propertiesSetAt']),
    ...(url.includes('identity=raw') ? ['linkedUserId'] : []),
    'mergedInto',
  ];
  expect(Object.keys(record)).toEqual(fieldsOf(schema).filter((field) => !absent.includes(field)));
  const optional = url.includes('total=capped') ? [] : ['totalIsLowerBound'];
  if ('results' in body) {
    expect(Object.keys(body)).toEqual(fieldsOf(`${schema}Page`).filter((field) => !optional.includes(field)));
  }
});

test.each([
  ['GET /events/names', '/events/names?limit=1&prefix=e'],
  ['GET /events/properties', '/events/properties?startDate=2026-01-01&event=e'],
  ['GET /events/values', '/events/values?property=properties.plan'],
  ['GET /events/values', '/events/values?property=event&endDate=2026-12-31'],
  ['GET /users/{foreignId}/activity', '/users/jane/activity?identity=linked'],
  ['GET /identities', '/identities?userId=jane'],
  ['GET /identities/conflicts', '/identities/conflicts'],
  ['GET /identities/merges', '/identities/merges?into=jane'],
  ['GET /organizations/{foreignUserGroupId}/activity', '/organizations/jane/activity'],
  ['GET /overview', '/overview?timeZone=Europe/Berlin'],
  ['GET /events/series', '/events/series?startDate=2026-02-27&endDate=2026-03-02'],
  ['GET /events/series', '/events/series?startDate=2026-03-01&groupBy=event,properties.plan&groups=1&compare=previous'],
  [
    'GET /events/series',
    '/events/series?startDate=2026-03-01&interval=none&measure=p95:properties.plan&groupBy=userId',
  ],
])('the report of %s is as documented', async (operation, url) => {
  const response = await query.app.inject({ url, headers: { authorization: 'Bearer a' } });
  expect(response.statusCode).toBe(200);
  expect(checker.errorsOfResponse(operation, response)).toBeUndefined();
});

test.each([
  ['invalid_request', 'GET /events', '/events?colour=1', 'a'],
  ['invalid_request', 'GET /events/values', '/events/values', 'a'],
  ['not_found', 'GET /users/{foreignId}/activity', '/users/nobody/activity', 'a'],
  ['invalid_request', 'GET /events/series', '/events/series', 'a'],
  ['invalid_request', 'GET /overview', '/overview?timeZone=Mars', 'a'],
  ['invalid_request', 'GET /users/{foreignId}', '/users/jane?colour=1', 'a'],
  ['invalid_request', 'GET /identities', '/identities', 'a'],
  ['unauthorized', 'GET /events', '/events', 'nope'],
  ['missing_scope', 'GET /organizations', '/organizations', 'ingest-only'],
  ['not_found', 'GET /users/{foreignId}', '/users/nobody', 'a'],
  [
    'position_lost',
    'GET /events/stream',
    `/events/stream?after=${encodePosition(new Map([[9, endOfBlock(1)]]), 1e12)}`,
    'a',
  ],
  ['not_found', 'GET /docs/{file}', '/docs/nothing', 'a'],
])('the response with %s of %s is as documented', async (code, operation, url, key) => {
  const response = await query.app.inject({ url, headers: { authorization: `Bearer ${key}` } });
  expect(response.json()).toMatchObject({ code });
  expect(checker.errorsOfResponse(operation, response)).toBeUndefined();
});

test.each([
  ['sql_not_available', 'sql-a', 'application/json', '{"sql":"SELECT 1"}'],
  ['missing_scope', 'a', 'application/json', '{"sql":"SELECT 1"}'],
  ['invalid_request', 'sql-a', 'application/json', '{"sql":"","format":"xml"}'],
  ['malformed_json', 'sql-a', 'application/json', 'SELECT 1'],
  ['unsupported_media_type', 'sql-a', 'text/plain', 'SELECT 1'],
  ['body_too_large', 'sql-a', 'application/json', `{"sql":"SELECT '${'x'.repeat(600_000)}'"}`],
])('the response with %s of POST /queries is as documented', async (code, key, type, payload) => {
  const headers = { authorization: `Bearer ${key}`, 'content-type': type };
  const response = await query.app.inject({ method: 'POST', url: '/queries', headers, payload });
  expect(response.json()).toMatchObject({ code });
  expect(checker.errorsOfResponse('POST /queries', response)).toBeUndefined();
});

test('the response with rate_limited is as documented', async () => {
  const get = () => query.app.inject({ url: '/events?limit=0', headers: { authorization: 'Bearer limited' } });
  const response = (await Promise.all([get(), get(), get(), get()])).at(-1);
  expect(response?.json()).toMatchObject({ code: 'rate_limited' });
  expect(response && checker.errorsOfResponse('GET /events', response)).toBeUndefined();
});

/** An operation of a path, a method that the path does not have, and those that it has. */
type Refused = Readonly<Record<string, readonly [operation: string, method: 'GET' | 'PUT' | 'POST', allow: string]>>;

/** Those of a list of webhooks of some kind. */
const refusedOfWebhooks = (list: string): Refused => ({
  [list]: ['GET', 'PUT', 'GET, HEAD, POST'],
  [`${list}/{id}`]: ['GET', 'PUT', 'GET, HEAD, PATCH, DELETE'],
  [`${list}/{id}/rotate`]: ['POST', 'GET', 'POST'],
  [`${list}/{id}/resume`]: ['POST', 'GET', 'POST'],
  [`${list}/{id}/test`]: ['POST', 'GET', 'POST'],
});

/** Paths that are not here have GET alone. */
const REFUSED_METHODS: Refused = {
  '/segments/{name}': ['GET', 'POST', 'GET, HEAD, PUT, DELETE'],
  '/names/properties': ['GET', 'POST', 'GET, HEAD, PUT'],
  '/identities/settings': ['GET', 'POST', 'GET, HEAD, PUT'],
  '/properties/fast': ['GET', 'POST', 'GET, HEAD, PUT'],
  '/queries': ['POST', 'GET', 'POST'],
  '/users': ['GET', 'PUT', 'GET, HEAD, DELETE'],
  '/identities': ['GET', 'PUT', 'GET, HEAD, POST, DELETE'],
  '/identities/merge': ['POST', 'GET', 'POST, DELETE'],
  '/keys': ['GET', 'PUT', 'GET, HEAD, POST'],
  '/keys/{id}': ['DELETE', 'GET', 'DELETE'],
  '/dead-letters/{id}/replay': ['POST', 'GET', 'POST'],
  '/views': ['GET', 'PUT', 'GET, HEAD, POST'],
  '/views/{id}': ['GET', 'PUT', 'GET, HEAD, PATCH, DELETE'],
  '/dashboards': ['GET', 'PUT', 'GET, HEAD, POST'],
  '/dashboards/{id}': ['GET', 'PUT', 'GET, HEAD, PATCH, DELETE'],
  '/dashboards/{id}/links': ['GET', 'PUT', 'GET, HEAD, POST'],
  '/dashboards/{id}/links/{link}': ['DELETE', 'GET', 'DELETE'],
  ...refusedOfWebhooks('/webhooks'),
  ...refusedOfWebhooks('/alerts'),
  ...refusedOfWebhooks('/digests'),
  '/webhooks/{id}/replay': ['POST', 'GET', 'POST'],
  '/example-data': ['POST', 'GET', 'POST, DELETE'],
};

test('the response with 405 is as documented on every path', async () => {
  for (const path of Object.keys(document.paths ?? {})) {
    const [operation, method, allow] = REFUSED_METHODS[path] ?? ['GET', 'PUT', 'GET, HEAD'];
    const response = await query.app.inject({ method, url: path.replaceAll(/\{\w+\}/g, 'x') });
    expect([path, response.statusCode, response.headers.allow]).toEqual([path, 405, allow]);
    expect(checker.errorsOfResponse(`${operation} ${path}`, response)).toBeUndefined();
  }
});

test('a request without a body is the same with a content type and without, on every path', async () => {
  const changes = [...checker.operations.keys()].filter((operation) => !operation.startsWith('GET '));
  expect(changes.length).toBeGreaterThan(20);
  for (const operation of changes) {
    const [method = '', path = ''] = operation.split(' ');
    const request = { method: method as 'POST', url: path.replaceAll(/\{\w+\}/g, 'x') };
    const authorization = 'Bearer all-a';
    const plain = await query.app.inject({ ...request, headers: { authorization } });
    // Many clients send the type with every request.
    const typed = await query.app.inject({
      ...request,
      headers: { authorization, 'content-type': 'application/json' },
    });
    expect([operation, typed.statusCode, typed.json().code]).toEqual([operation, plain.statusCode, plain.json().code]);
    expect(typed.json().code).not.toBe('missing_scope');
  }
});
