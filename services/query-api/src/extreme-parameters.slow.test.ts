import type { AddressInfo } from 'node:net';
import type { OpenApiDocument } from '@sluice/shared/http/openapi';
import fc, { sample } from '@sluice/shared/testing/fast-check';
import { createDocumentChecker } from '@sluice/shared/testing/openapi';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { anEvent, aRegister, type QueryService, startQuery } from './testing/query-service.ts';
import { WEBHOOKS_ENV } from './testing/webhooks.ts';

// Every parameter of every read, as the OpenAPI document has them: at its least, at its most, one beyond, empty and twice.

let query: QueryService;
let origin: string;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), {
    ...WEBHOOKS_ENV,
    WEBHOOK_DELIVERY: 'false',
    OPERATOR_WORKSPACE: 'a',
  });
  await query.app.listen({ host: '127.0.0.1', port: 0 });
  origin = `http://127.0.0.1:${(query.app.server.address() as AddressInfo).port}`;
  await query.store('a', [anEvent({ userId: 'jane', properties: '{"p":1}' }), anEvent({ event: 'paid' })]);
  for (const kind of ['user', 'organization']) {
    const entity = { workspace_id: 'a', kind, id: 'jane' };
    await query.insert('entities', [{ ...entity, first_seen_at: 1e12, last_seen_at: 2e12, version: 5 }]);
    await query.insert('entity_properties', [{ ...entity, property: 'plan', register: aRegister(5, 'set', '"pro"') }]);
  }
});
afterAll(() => query.stop());

interface Parameter {
  readonly name: string;
  /** As a URL writes them. */
  readonly values: readonly string[];
  /** Those that are beyond what the document says. */
  readonly beyond: readonly string[];
}

interface Route {
  readonly path: string;
  readonly parameters: readonly Parameter[];
}

interface Schema {
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
}

interface ParameterObject {
  readonly in?: string;
  readonly name?: string;
  readonly schema?: Schema;
}

/** What a read needs besides, so that it is refused for nothing else. */
const NEEDED: Readonly<Record<string, string>> = {
  '/events/series': 'startDate=2026-03-01&endDate=2026-03-02',
  '/events/funnel': 'startDate=2026-03-01&endDate=2026-03-02&steps=e,paid',
  '/events/funnel/people': 'startDate=2026-03-01&endDate=2026-03-02&steps=e,paid&step=1',
  '/events/retention': 'startDate=2026-03-01&endDate=2026-03-02',
  '/events/retention/people': 'startDate=2026-03-01&endDate=2026-03-02&cohort=2026-03-01',
  '/events/values': 'property=event',
  '/events/export': 'startDate=2026-03-01',
  '/search': 'q=jane',
  '/identities': 'userId=jane',
};

/** Parameters that others have to fit: a refusal may name these instead. */
const RELATED = ['startDate', 'endDate', 'interval', 'cohort', 'group', 'groupBy'];

/** How many odd texts each parameter of each read gets, others in each run. */
const ODD_TEXTS = 1;

/** How many dates each parameter of a time gets, others in each run. */
const DATES_TRIED = 2;

/** Parameters that stand for any name that begins with theirs. */
const PREFIXES: Readonly<Record<string, readonly string[]>> = {
  properties: [
    'properties.p',
    'properties.p[lt]',
    'properties.p[in]',
    'properties.p[exists]',
    'properties.p[contains]',
  ],
  context: ['context.a.b[gte]'],
  traits: ['traits.a[prefix]'],
  operators: ['event[in]', 'userId[ne]', 'uuid[in]'],
};

/** Texts that something may stumble over, whatever the parameter is. */
const ODD = [
  '',
  '%00',
  '%ff',
  '%',
  '%20',
  '-1',
  '1e400',
  'NaN',
  '%5B%5D',
  "'",
  '%5C',
  'x'.repeat(2_100),
  '%F4%8F%BF%BF',
];

const DATES = [
  ...['0000-01-01', '1899-12-31', '1900-01-01', '2299-12-31', '2300-01-01', '9999-12-31T23:59:59.999Z', '2026-02-29'],
  ...['2026-03-01T24:00:00Z', '2026-03-01T00:00:00%2B14:00', '%2B275760-09-13T00:00:00.001Z', '1'],
];

const oddText = fc.constantFrom(...ODD);
const date = fc.constantFrom(...DATES);

function valuesOf(name: string, { enum: options = [], minimum, maximum }: Schema): Omit<Parameter, 'name'> {
  const bounds = [minimum, maximum].filter((bound) => bound !== undefined);
  const isTime = /Date|^from$|^cohort$|^after$/.test(name);
  return {
    values: [
      '',
      ...options,
      ...bounds.map(String),
      ...(isTime ? sample(date, DATES_TRIED) : []),
      ...sample(oddText, ODD_TEXTS),
    ],
    beyond: [
      ...(minimum === undefined ? [] : [String(minimum - 1), `${minimum}.5`, `%2B${minimum}`]),
      ...(maximum === undefined ? [] : [(BigInt(maximum) + 1n).toString(), '9'.repeat(400)]),
      ...(options.length > 0 ? [`${options[0]}x`, `${options[0]},${options[0]}`] : []),
    ],
  };
}

function routesOf(document: OpenApiDocument): readonly Route[] {
  return [...createDocumentChecker(document).operations].flatMap(([operation, { value }]) => {
    const [method, path = ''] = operation.split(' ');
    const given = ((value['parameters'] ?? []) as ParameterObject[]).filter((one) => one.in === 'query');
    if (method !== 'GET' || given.length === 0) return [];
    const parameters = given.flatMap(({ name = '', schema = {} }) =>
      (PREFIXES[name] ?? [name]).map((one) => ({ name: one, ...valuesOf(one, schema) })),
    );
    return [{ path, parameters }];
  });
}

/** A query, with what it needs besides where it does not have it itself. */
function urlOf(path: string, given: readonly (readonly [name: string, value: string])[]): string {
  const needed = (NEEDED[path] ?? '').split('&').filter((part) => !given.some(([name]) => part.startsWith(`${name}=`)));
  const parts = [...needed, ...given.map(([name, value]) => `${encodeURIComponent(name)}=${value}`)];
  return `${path.replaceAll(/\{\w+\}/g, 'jane')}?${parts.filter((part) => part !== '').join('&')}`;
}

/** Returns what is wrong with the response, which may have no end. */
async function faultOf(url: string, names: readonly string[], isRefused: boolean): Promise<string | undefined> {
  const key = /^\/(?:dead-letters|keys|audits\/workspaces)/.test(url)
    ? 'admin-a'
    : /^\/(?:webhooks|alerts|digests)/.test(url)
      ? 'webhooks-a'
      : 'a';
  const response = await fetch(`${origin}${url}`, { headers: { authorization: `Bearer ${key}` } });
  // There is no dashboard: what is taken finds none.
  if (response.ok || (response.status === 404 && url.startsWith('/dashboards/'))) {
    await response.body?.cancel();
    return isRefused ? `${url.slice(0, 300)} is taken` : undefined;
  }
  const text = await response.text();
  const shown = `${url.slice(0, 300)}: ${response.status} ${text.slice(0, 300)}`;
  if (![400, 410].includes(response.status)) return shown;
  const { code, errors = [] } = JSON.parse(text) as { code: string; errors?: readonly { path: string }[] };
  if (code !== 'invalid_request') return undefined;
  const isNamed = errors.length > 0 && errors.every(({ path }) => [...names, ...RELATED].includes(path));
  return isNamed ? undefined : `${shown} names another one`;
}

async function faultsOf(requests: readonly (readonly [string, readonly string[], boolean])[]): Promise<string[]> {
  const faults: (string | undefined)[] = [];
  let next = 0;
  const work = async () => {
    for (let request = requests[next++]; request; request = requests[next++]) faults.push(await faultOf(...request));
  };
  await Promise.all(Array.from({ length: 4 }, work));
  return faults.filter((fault) => fault !== undefined);
}

const documentOf = async () => (await query.app.inject('/openapi.json')).json() as OpenApiDocument;

test('a parameter at its least or most, empty or odd is taken or refused by name; beyond that or given twice it is refused', async () => {
  const routes = routesOf(await documentOf());
  expect(routes.length).toBeGreaterThan(15);
  const requests = routes.flatMap(({ path, parameters }) =>
    parameters.flatMap(({ name, values, beyond }) => [
      ...values.map((value) => [urlOf(path, [[name, value]]), [name], false] as const),
      ...beyond.map((value) => [urlOf(path, [[name, value]]), [name], true] as const),
      [
        urlOf(path, [
          [name, '1'],
          [name, '1'],
        ]),
        [name],
        true,
      ] as const,
    ]),
  );
  expect(await faultsOf(requests)).toEqual([]);
});

test('any of these together are taken or refused by their names', async () => {
  const routes = routesOf(await documentOf()).filter(({ parameters }) => parameters.length > 1);
  const combination = ({ path, parameters }: Route) =>
    fc
      .uniqueArray(fc.constantFrom(...parameters), {
        minLength: 2,
        maxLength: Math.min(6, parameters.length),
        selector: ({ name }) => name,
      })
      .chain((chosen) =>
        fc.tuple(
          ...chosen.map(({ name, values, beyond }) =>
            fc.constantFrom(...values, ...beyond).map((value) => [name, value] as const),
          ),
        ),
      )
      .map((given) => [urlOf(path, given), given.map(([name]) => name), false] as const);
  for (const route of routes) {
    expect(await faultsOf(sample(combination(route), 8))).toEqual([]);
  }
});
