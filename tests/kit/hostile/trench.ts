import { STATEMENTS_MAX } from '@sluice/trench-api/queries/post-queries';
import { seededRandom } from '../random.ts';
import { bodyDoor, textOfLength } from './body-door.ts';
import { type Door, type Doors, plainDoor } from './door.ts';
import { LIMITS } from './limits.ts';
import { hostileStatement, RUN } from './statements.ts';
import { below, FLAVOURS, PRINTABLE, pick, textOf } from './texts.ts';
import { trenchWebhook } from './webhooks.ts';

const service = 'trench-api';

const postEvents = bodyDoor({
  request: { service, method: 'POST', path: '/events' },
  limits: ['identifier', 'eventName'],
  bodyLimit: 'bodyBytes',
  body(values, random) {
    const flavour = pick(random, FLAVOURS);
    const event = {
      type: 'track',
      event: textOf(flavour, values.get('eventName') ?? 12),
      userId: textOf(flavour, values.get('identifier') ?? 12),
      properties: { [textOf(flavour, 200)]: textOf(flavour, below(random, 10_000)) },
    };
    return { events: [event, { type: 'group', groupId: 'g', event: 'group', properties: { $set: { plan: 'pro' } } }] };
  },
  answered: { statuses: [201], named: [['"uuid"']] },
});

/** Filters by all members of an object, on pages whose events are long. */
const getEvents: Door = {
  limits: ['page', 'offset', 'propertyFilters'],
  build(values, seed) {
    const random = seededRandom(seed);
    const count = values.get('propertyFilters') ?? below(random, 3);
    const flavour = pick(random, PRINTABLE);
    const filters = Object.fromEntries(
      Array.from({ length: count }, (_, index) => [`${textOf(flavour, 20)}${index}`, index]),
    );
    const parameters = new URLSearchParams({
      limit: String(values.get('page') ?? below(random, 1_000)),
      ...(values.has('offset') && { offset: String(values.get('offset')) }),
      ...(count > 0 && { properties: JSON.stringify(filters) }),
      ...(random() < 0.3 && { event: 'long' }),
      orderByField: pick(random, ['timestamp', 'parsed_at', 'user_id', 'event']),
    });
    const over = (['offset', 'propertyFilters'] as const).filter(
      (limit) => (values.get(limit) ?? 0) > LIMITS[limit].max,
    );
    const named = over.map((limit) => [String(LIMITS[limit].max)]);
    return {
      request: { service, method: 'GET', path: `/events?${parameters}`, headers: {} },
      expected: over.length > 0 ? { statuses: [400], named } : { statuses: [200, 400], named: [] },
    };
  },
};

const postQueries = bodyDoor({
  request: { service, method: 'POST', path: '/queries' },
  body: (_, random) => ({ queries: Array.from({ length: 1 + below(random, 2) }, () => hostileStatement(random)) }),
  answered: { ...RUN, statuses: [201, 400] },
});

/** More statements than a request may have. */
const manyQueries = bodyDoor({
  request: { service, method: 'POST', path: '/queries' },
  body: () => ({ queries: Array.from({ length: STATEMENTS_MAX + 1 }, () => 'SELECT 1') }),
  answered: { statuses: [400], named: [[String(STATEMENTS_MAX)]] },
});

const queries: Door = {
  limits: [],
  build: (values, seed) => (seed % 4 === 0 ? manyQueries : postQueries).build(values, seed),
};

const webhook = (method: 'POST' | 'PUT') =>
  bodyDoor({
    request:
      method === 'POST'
        ? { service, method, path: '/webhooks', undo: '/webhooks/{uuid}' }
        : { service, method, path: '/webhooks/{webhook}' },
    limits: ['webhookUrl'],
    body: trenchWebhook,
    answered: { statuses: [method === 'POST' ? 201 : 200], named: [['"uuid"']] },
  });

/** The admin is no tenant; a tenant's key is refused. */
const asAdmin = { authorization: 'Bearer {adminKey}' };

const workspace = (method: 'POST' | 'PUT'): Door => {
  const request =
    method === 'POST'
      ? ({ service, method, path: '/workspaces', undo: '/workspaces/{workspaceId}' } as const)
      : ({ service, method, path: '/workspaces/{workspace}' } as const);
  const doorOf = (isAdmin: boolean) =>
    bodyDoor({
      request: { ...request, ...(isAdmin && { headers: asAdmin }) },
      body: (_, random) => ({ name: textOfLength(random, 100).replaceAll(/\d/g, 'd') + below(random, 1e9) }),
      answered: isAdmin
        ? // Another request may have given a workspace that name.
          { statuses: [method === 'POST' ? 201 : 200, 400], named: [], refusals: ['invalid_request'] }
        : { statuses: [401], named: [['unauthorized']] },
    });
  return { limits: [], build: (values, seed) => doorOf(seed % 3 === 0).build(values, seed) };
};

/** The routes of trench-api. What a request creates it deletes again, by the route beside it. */
export const TRENCH_DOORS: Doors = {
  'GET /': plainDoor({ service, method: 'GET', path: '/' }),
  'POST /events': postEvents,
  'GET /events': getEvents,
  'POST /queries': queries,
  'GET /webhooks': plainDoor({ service, method: 'GET', path: '/webhooks' }),
  'POST /webhooks': webhook('POST'),
  'PUT /webhooks/{uuid}': webhook('PUT'),
  'DELETE /webhooks/{uuid}': plainDoor({ service, method: 'DELETE', path: '/webhooks/{view}' }, [404]),
  'POST /workspaces': workspace('POST'),
  'GET /workspaces/{workspaceId}': plainDoor({
    ...{ service, method: 'GET', path: '/workspaces/{workspace}', headers: asAdmin },
  }),
  'PUT /workspaces/{workspaceId}': workspace('PUT'),
  'DELETE /workspaces/{workspaceId}': plainDoor(
    { service, method: 'DELETE', path: '/workspaces/{view}', headers: asAdmin },
    [404],
  ),
};
