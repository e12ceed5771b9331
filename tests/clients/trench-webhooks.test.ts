import { findFreePorts } from '@sluice/local-stack/ports';
import { Receiver } from '@sluice/query-api/testing/webhooks';
import { eventually } from '@sluice/shared/testing/eventually';
import { parseJson } from '@sluice/shared/text/json';
import { Webhook as Verifier } from 'standardwebhooks';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Service, startService } from '../kit/service.ts';
import { type Tenant, takeTenant } from '../kit/shared-pipeline.ts';

// Trench's /webhooks, as a client of Trench uses it, with deliveries of query-api.

const stack = new AsyncDisposableStack();
let pipeline: Tenant;
let trench: Service;
let receiver: Receiver;

beforeAll(async () => {
  pipeline = await takeTenant('trenchwebhooks');
  const [port = 0] = await findFreePorts(1);
  trench = startService('trench-api', port, {
    INGEST_URL: pipeline.services['ingest-api'].url,
    QUERY_URL: pipeline.services['query-api'].url,
  });
  stack.defer(() => trench.kill9());
  await trench.ready();
  receiver = stack.use(await Receiver.start());
});
afterAll(() => stack.disposeAsync());

async function call(method: string, path: string, body?: unknown, key = pipeline.key) {
  const response = await fetch(`${trench.url}${path}`, {
    method,
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: (text === '' ? {} : parseJson(text)) as Record<string, unknown> };
}

test('a webhook gets the events of its types and names as a list, signed, until it is deleted', async () => {
  const created = await call('POST', '/webhooks', {
    ...{ url: receiver.url, enableBatching: false, eventTypes: ['track'] },
    eventNames: ['paid, in full', 'back\\slash'],
  });
  const { uuid, secret, createdAt, ...rest } = created.body;
  expect(created.status).toBe(201);
  const shown = {
    ...{ url: receiver.url, enableBatching: true, eventTypes: ['track'] },
    ...{ eventNames: ['paid, in full', 'back\\slash'], flatten: false },
  };
  expect(rest).toEqual(shown);
  expect((await call('GET', '/webhooks')).body).toEqual({
    results: [{ uuid, createdAt, ...shown }],
    ...{ limit: 0, offset: 0, total: 1 },
  });

  const events = [
    { type: 'track', event: 'paid, in full', userId: 'ada' },
    { type: 'track', event: 'paid', userId: 'ada' },
    { type: 'page', event: 'paid, in full', userId: 'ada' },
    { type: 'track', event: 'back\\slash', userId: 'ada' },
  ];
  expect((await call('POST', '/events', { events })).status).toBe(201);
  const names = () =>
    receiver.received
      .flatMap(({ body }) => (parseJson(body) as { data: { event: string }[] }).data)
      .map(({ event }) => event)
      .toSorted();
  await eventually(names).toEqual(['back\\slash', 'paid, in full']);
  for (const { body, headers } of receiver.received)
    new Verifier(String(secret)).verify(body, headers as Record<string, string>);

  const changed = await call('PUT', `/webhooks/${uuid}`, { url: receiver.url });
  expect(changed).toEqual({
    status: 200,
    body: { ...{ uuid, createdAt, ...shown }, eventTypes: ['*'], eventNames: ['*'] },
  });
  expect(await call('DELETE', `/webhooks/${uuid}`)).toEqual({ status: 200, body: {} });
  expect((await call('GET', '/webhooks')).body).toMatchObject({ results: [], total: 0 });
  expect((await call('DELETE', `/webhooks/${uuid}`)).body).toMatchObject({ statusCode: 404, code: 'not_found' });
  expect((await call('PUT', `/webhooks/${uuid}`, { url: receiver.url })).status).toBe(404);
});

test('a wrong webhook names every error in words of Trench', async () => {
  const paths = async (body: object) => {
    const answer = await call('POST', '/webhooks', body);
    expect(answer).toMatchObject({ status: 400, body: { statusCode: 400, code: 'invalid_request' } });
    return (answer.body['errors'] as { path: string }[]).map(({ path }) => path).toSorted();
  };
  expect(await paths({ flatten: true, enableBatching: 'yes', eventTypes: [], eventNames: [7] })).toEqual([
    ...['enableBatching', 'eventNames.0', 'eventTypes', 'flatten', 'url'],
  ]);
  expect(await paths({ url: 'ftp://example.com/' })).toEqual(['url']);
  expect(await paths({ url: 'http://10.0.0.1/' })).toEqual(['url']);
  expect(await paths({ url: receiver.url, eventNames: ['x'.repeat(2_001)] })).toEqual(['eventNames']);
});

test('a public key gets 401', async () => {
  const key = await pipeline.addKey('test', ['ingest']);
  expect((await call('GET', '/webhooks', undefined, key)).status).toBe(401);
  expect((await call('POST', '/webhooks', { url: receiver.url }, key)).status).toBe(401);
});
