import type { OpenApiDocument } from '@sluice/shared/http/openapi';
import { PROBLEMS } from '@sluice/shared/http/problem';
import { eventually } from '@sluice/shared/testing/eventually';
import {
  createDocumentChecker,
  type DocumentChecker,
  errorsOfDocument,
  routesOf,
  withoutNames,
} from '@sluice/shared/testing/openapi';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type Ingest, post, startIngest } from './testing/ingest.ts';

let ingest: Ingest;
let document: OpenApiDocument;
let checker: DocumentChecker;
let routes: ReadonlySet<string>;

beforeAll(async () => {
  routes = await routesOf(async () => {
    ingest = await startIngest(inject('kafkaBrokers'), {
      EVENTS_PER_SUBMISSION_MAX: '7',
      EVENT_BYTES_MAX: '2222',
      BODY_BYTES_MAX: '33333',
    });
    return ingest.app;
  });
  document = (await ingest.app.inject('/openapi.json')).json();
  checker = createDocumentChecker(document);
});
afterAll(() => ingest.stop());

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

test('it describes every code except those of queries', () => {
  const ofQueries = [
    'query_too_expensive',
    'invalid_sql',
    'sql_not_available',
    'webhooks_not_available',
    'deletions_not_available',
    'example_not_available',
    'workspace_not_empty',
    'keys_read_only',
    'replay_not_available',
    'not_replayable',
    'views_not_available',
    'segment_in_use',
    'merge_chain',
    'stream_not_available',
    'store_unavailable',
    'position_lost',
    'too_many_listeners',
  ];
  const codes = Object.keys(PROBLEMS).filter((code) => !ofQueries.includes(code));
  expect(Object.keys(document.components?.examples ?? {}).sort()).toEqual(codes.sort());
  for (const code of codes) expect(document.info.description).toContain(`\`${code}\``);
});

test('it names the limits that are in force', () => {
  expect(JSON.stringify(document.components?.schemas?.['UserSubmission'])).toContain('"maxItems":7');
  expect(document.info.description).toContain('2,222');
  expect(document.info.description).toContain('33,333');
});

interface OperationWithBody {
  readonly requestBody: {
    readonly content: {
      readonly 'application/json': { readonly examples: Record<string, { readonly value: unknown }> };
    };
  };
}

describe('every example of a request', () => {
  const submissions = ['/v1/public/userGroups', '/v1/public/users'] as const;

  test.each(submissions)('to %s is accepted, with the documented response', async (path) => {
    const operation = checker.operations.get(`POST ${path}`)?.value as OperationWithBody | undefined;
    const examples = Object.values(operation?.requestBody.content['application/json'].examples ?? {});
    expect(examples.length).toBe(2);
    for (const { value } of examples) {
      const response = await post(ingest.app, value, { path });
      expect(response.statusCode).toBe(202);
      expect(checker.errorsOfResponse(`POST ${path}`, response)).toBeUndefined();
    }
  });
});

const json = { 'content-type': 'application/json' };
const tooLarge = JSON.stringify({ properties: { a: 'x'.repeat(3_000) } });

test.each([
  ['202', 'DELETE /v1/users', { query: '?foreignId=a' }],
  ['invalid_request', 'DELETE /v1/users', {}],
  ['202', 'POST /v1/identities', { headers: json, payload: '{"anonymousId":"a","userId":"u"}' }],
  ['202', 'DELETE /v1/identities', { query: '?anonymousId=a' }],
  ['invalid_request', 'DELETE /v1/identities', {}],
  ['malformed_json', 'POST /v1/identities', { headers: json, payload: '{' }],
  ['202', 'POST /v1/identities/merge', { headers: json, payload: '{"userId":"a","into":"b"}' }],
  ['202', 'DELETE /v1/identities/merge', { query: '?userId=a' }],
  ['invalid_request', 'POST /v1/identities/merge', { headers: json, payload: '{"userId":"a","into":"a"}' }],
  ['missing_scope', 'DELETE /v1/identities', { headers: { authorization: 'Bearer ingest-only' } }],
  ['invalid_request', 'POST /v1/public/users', { headers: json, payload: '{"colour":1}' }],
  ['invalid_request', 'GET /livez', { query: '?%zz' }],
  ['malformed_json', 'POST /v1/public/users', { headers: json, payload: '{' }],
  ['body_too_large', 'DELETE /v1/users', { headers: json, payload: `"${'x'.repeat(40_000)}"` }],
  ['body_too_large', 'POST /v1/public/users', { headers: json, payload: `{"foreignId":"a",${tooLarge.slice(1)}` }],
  ['unsupported_media_type', 'POST /v1/public/users', { headers: { 'content-type': 'text/plain' }, payload: 'a' }],
  ['unsupported_media_type', 'DELETE /v1/users', { headers: { 'content-type': 'text/plain' }, payload: 'a' }],
  ['unauthorized', 'POST /v1/public/userGroups', { headers: { authorization: 'Bearer nope' } }],
  ['missing_scope', 'POST /v1/public/userGroups', { headers: { authorization: 'Bearer query-only' } }],
  ['missing_scope', 'DELETE /v1/users', { headers: { authorization: 'Bearer ingest-only' } }],
  ['200', 'POST /e', { payload: '{"event":"e","distinct_id":"a"}' }],
  ['200', 'POST /batch', { payload: '{"batch":[{"event":"e"}]}' }],
  ['invalid_api_key', 'POST /batch', { payload: '{"api_key":"nobody","batch":[]}' }],
  ['missing_scope', 'POST /capture', { payload: '{"api_key":"query-only"}' }],
  ['malformed_json', 'POST /i/v0/e', { payload: '{' }],
  ['200', 'POST /flags', { payload: '{}' }],
  ['invalid_api_key', 'POST /decide', { payload: '{"token":"nobody"}' }],
  ['200', 'POST /s', {}],
  ['200', 'GET /projects/{key}/settings', {}],
  ['200', 'POST /v1/m', { payload: '{}' }],
  ['200', 'GET /api/{kind}', {}],
  ['200', 'POST /i/{version}/{kind}', { payload: '{}' }],
  ['200', 'GET /', {}],
  ['200', 'GET /livez', {}],
  ['200', 'GET /metrics', {}],
  ['200', 'GET /openapi.json', {}],
  ['200', 'GET /docs', {}],
] as const)('%s of %s is the documented response', async (outcome, operation, given) => {
  const [method, path] = operation.split(' ') as ['GET' | 'POST' | 'DELETE', string];
  const response = await ingest.app.inject({
    method,
    url: `${path}${'query' in given ? given.query : ''}`,
    ...('payload' in given && { payload: given.payload }),
    headers: { authorization: 'Bearer all', ...('headers' in given && given.headers) },
  });
  expect(checker.errorsOfResponse(operation, response)).toBeUndefined();
  if (/^\d/.test(outcome)) expect(response.statusCode).toBe(Number(outcome));
  else {
    const { value } = checker.operations.get(operation) ?? {};
    expect(response.json()).toMatchObject({ code: outcome });
    expect(JSON.stringify(value)).toContain(`#/components/examples/${outcome}`);
  }
});

test('rate_limited is the documented response', async () => {
  await ingest.setKey('limited', { rateLimit: 1 });
  // So many that the bucket stays empty, however slowly requests come.
  const events = Array.from({ length: 200 }, () => ({ event: 'e' }));
  const submit = () => post(ingest.app, { foreignUserGroupId: 'a', events }, { key: 'limited' });
  await eventually(async () => (await submit()).statusCode, { interval: 20 }).toBe(429);
  const operation = 'POST /v1/public/userGroups';
  expect(checker.errorsOfResponse(operation, await submit())).toBeUndefined();
  expect(JSON.stringify(checker.operations.get(operation)?.value)).toContain('#/components/examples/rate_limited');
});

test('405 is the documented response on every path, with its methods in Allow', async () => {
  for (const path of Object.keys(document.paths ?? {})) {
    const documented = [...checker.operations.keys()].filter((operation) => operation.endsWith(` ${path}`));
    const methods = documented.map((operation) => operation.split(' ')[0] ?? '');
    const response = await ingest.app.inject({ method: 'PATCH', url: path.replaceAll(/\{\w+\}/g, 'x') });
    expect(response.statusCode, path).toBe(405);
    expect(response.headers.allow, path).toBe([...methods, ...(methods.includes('GET') ? ['HEAD'] : [])].join(', '));
    expect(checker.errorsOfResponse(documented[0] ?? '', response)).toBeUndefined();
  }
});
