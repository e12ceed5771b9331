import { bodyDoor, textOfLength } from './body-door.ts';
import { members } from './documents.ts';
import { type Door, type Doors, type Expectation, type HostileRequest, plainDoor } from './door.ts';
import type { LimitId } from './limits.ts';
import { BEHAVIOURS } from './receivers.ts';
import { pick, type Random } from './texts.ts';

type Values = ReadonlyMap<LimitId, number>;

/** A name that no DNS server knows anything about. It ends with a dot, so that this machine's search list does not matter. */
const SILENT = 'http://silent.example.:80/';

function webhook(values: Values, random: Random): object {
  const length = values.get('webhookUrl');
  const [count, characters] = [values.get('webhookFilters'), values.get('webhookFilter')];
  const isFiltered = count !== undefined || characters !== undefined;
  return {
    url: length === undefined ? `{receiver}/${pick(random, BEHAVIOURS)}` : SILENT.padEnd(length, 'x'),
    batched: random() < 0.5,
    ...(isFiltered && {
      filter: members(random, count ?? 1, characters ?? 3, (index) => `properties.p${index}[ne]`),
    }),
  };
}

/** A filter may have more filters on properties than a read may, or one that no query can have. */
const REFUSED = ['invalid_request', 'query_too_expensive', 'too_long'];

const answered = (status: number): Expectation => ({
  statuses: [status, 400],
  named: [['"id"', ...REFUSED]],
  refusals: REFUSED,
});

const webhookDoor = (request: Pick<HostileRequest, 'method' | 'path' | 'undo'>): Door =>
  bodyDoor({
    request: { service: 'query-api', ...request },
    limits: ['webhookUrl', 'webhookFilters', 'webhookFilter'],
    bodyLimit: 'webhookBody',
    body: webhook,
    answered: answered(request.method === 'POST' ? 201 : 200),
  });

const act = (action: string, statuses: readonly number[] = [200], id = '{webhook}') =>
  plainDoor({ service: 'query-api', method: 'POST', path: `/webhooks/${id}/${action}` }, statuses);

/** Tests of the receiver that answers somehow, and of the one whose name nobody knows. */
const testDoor: Door = {
  limits: [],
  build: (_, seed) =>
    // Two of a workspace at once.
    act('test', [200, 429], seed % 2 === 0 ? '{webhook}' : '{silentWebhook}').build(new Map(), seed),
};

/** The routes of webhooks in query-api. What a request creates it deletes again, by the route beside it. */
export const WEBHOOK_DOORS: Doors = {
  'GET /webhooks': plainDoor({ service: 'query-api', method: 'GET', path: '/webhooks' }),
  'POST /webhooks': webhookDoor({ method: 'POST', path: '/webhooks', undo: '/webhooks/{id}' }),
  'GET /webhooks/{id}': plainDoor({ service: 'query-api', method: 'GET', path: '/webhooks/{webhook}' }),
  'PATCH /webhooks/{id}': webhookDoor({ method: 'PATCH', path: '/webhooks/{webhook}' }),
  'DELETE /webhooks/{id}': plainDoor({ service: 'query-api', method: 'DELETE', path: '/webhooks/{view}' }, [404]),
  'POST /webhooks/{id}/rotate': act('rotate'),
  'POST /webhooks/{id}/resume': act('resume'),
  'POST /webhooks/{id}/test': testDoor,
  'POST /webhooks/{id}/replay': act('replay?from=2026-01-01', [200, 400]),
  'GET /webhooks/{id}/deliveries': plainDoor({
    ...{ service: 'query-api', method: 'GET', path: '/webhooks/{webhook}/deliveries' },
  }),
};

/** The body of a webhook in Trench's words. */
export function trenchWebhook(values: Values, random: Random): object {
  const length = values.get('webhookUrl');
  return {
    url: length === undefined ? `{receiver}/${pick(random, BEHAVIOURS)}` : SILENT.padEnd(length, 'x'),
    eventNames: ['*', textOfLength(random, 40)],
  };
}
