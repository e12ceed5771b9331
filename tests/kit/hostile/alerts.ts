import { bodyDoor, textOfLength } from './body-door.ts';
import { type Door, type Doors, type Expectation, type HostileRequest, plainDoor } from './door.ts';
import type { LimitId } from './limits.ts';
import { BEHAVIOURS } from './receivers.ts';
import { pick, type Random } from './texts.ts';

type Values = ReadonlyMap<LimitId, number>;

const CONDITIONS = [
  { is: 'above', threshold: -1e308 },
  { is: 'below', threshold: 0.1 },
  { is: 'changes', percent: 1_000_000 },
  { is: 'absent' },
];

function urlOf(values: Values, random: Random): string {
  const length = values.get('alertUrl');
  return length === undefined
    ? `{receiver}/${pick(random, BEHAVIOURS)}`
    : 'http://silent.example.:80/'.padEnd(length, 'x');
}

function alert(values: Values, random: Random): object {
  return {
    name: textOfLength(random, values.get('alertName') ?? 20),
    ...{ view: '{view}', condition: pick(random, CONDITIONS), window: pick(random, ['1m', '120m', '72h', '90d']) },
    ...{ for: values.get('alertFor') ?? 1, url: urlOf(values, random), format: pick(random, ['signed', 'slack']) },
  };
}

function digest(values: Values, random: Random): object {
  const timeZone = pick(random, ['UTC', 'Pacific/Apia', 'america/new_york']);
  return {
    ...{ dashboard: '{dashboard}', hour: pick(random, [0, 23]), timeZone },
    ...{ url: urlOf(values, random), format: pick(random, ['signed', 'slack']) },
  };
}

/** The view may be one of SQL by then, and there are only so many at once. */
const answered = (status: number): Expectation => ({
  statuses: [status, 400],
  named: [['"id"', 'invalid_request']],
  refusals: ['invalid_request'],
});

const alertDoor = (request: Pick<HostileRequest, 'method' | 'path' | 'undo'>): Door =>
  bodyDoor({
    ...{ request: { service: 'query-api', ...request }, limits: ['alertName', 'alertUrl', 'alertFor'] },
    ...{ bodyLimit: 'alertBody', body: alert, answered: answered(request.method === 'POST' ? 201 : 200) },
  });

const digestDoor = (request: Pick<HostileRequest, 'method' | 'path' | 'undo'>): Door =>
  bodyDoor({
    ...{ request: { service: 'query-api', ...request }, limits: ['alertUrl'] },
    ...{ bodyLimit: 'alertBody', body: digest, answered: answered(request.method === 'POST' ? 201 : 200) },
  });

/** What is done with one of a list. Two tests of a workspace are sent at once. */
function plainDoors(list: string, own: string): Doors {
  const door = (method: 'GET' | 'POST' | 'DELETE', path: string, statuses?: readonly number[]) =>
    plainDoor({ service: 'query-api', method, path }, statuses);
  return {
    [`GET /${list}`]: door('GET', `/${list}`),
    [`GET /${list}/{id}`]: door('GET', `/${list}/${own}`),
    [`DELETE /${list}/{id}`]: door('DELETE', `/${list}/{webhook}`, [404]),
    [`POST /${list}/{id}/rotate`]: door('POST', `/${list}/${own}/rotate`),
    [`POST /${list}/{id}/resume`]: door('POST', `/${list}/${own}/resume`),
    [`POST /${list}/{id}/test`]: door('POST', `/${list}/${own}/test`, [200, 429]),
    [`GET /${list}/{id}/deliveries`]: door('GET', `/${list}/${own}/deliveries`),
  };
}

/** The routes of alerts and digests in query-api. What a request creates it deletes again. */
export const ALERT_DOORS: Doors = {
  ...plainDoors('alerts', '{alert}'),
  'POST /alerts': alertDoor({ method: 'POST', path: '/alerts', undo: '/alerts/{id}' }),
  'PATCH /alerts/{id}': alertDoor({ method: 'PATCH', path: '/alerts/{alert}' }),
  ...plainDoors('digests', '{digest}'),
  'POST /digests': digestDoor({ method: 'POST', path: '/digests', undo: '/digests/{id}' }),
  'PATCH /digests/{id}': digestDoor({ method: 'PATCH', path: '/digests/{digest}' }),
};
