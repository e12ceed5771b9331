import { bodyDoor, textOfLength } from './body-door.ts';
import { type Door, type Doors, type Expectation, HOSTILE_SEGMENT, plainDoor } from './door.ts';
import type { LimitId } from './limits.ts';
import { EXPENSIVE_STATEMENTS } from './statements.ts';
import { pick, type Random } from './texts.ts';

type Values = ReadonlyMap<LimitId, number>;

const CREATED: Expectation = { statuses: [201], named: [['"id"']] };
const CHANGED: Expectation = { statuses: [200], named: [['"id"']] };

/** Members that are valid by themselves may be invalid for a report, or too many of a kind. */
const orInvalid = ({ statuses, named }: Expectation): Expectation => ({
  statuses: [...statuses, 400],
  named: named.map((texts) => [...texts, '"invalid_request"', '"query_too_expensive"', '"too_long"']),
  refusals: ['invalid_request', 'query_too_expensive', 'too_long'],
});

const ORDINARY_CHARACTERS = 12;

const nameOf = (values: Values, random: Random) => textOfLength(random, values.get('viewName') ?? ORDINARY_CHARACTERS);

/** So many members, the first of which has a text of so many characters. */
export function members(
  random: Random,
  count: number,
  characters: number,
  nameAt: (index: number) => string,
): Record<string, string> {
  return Object.fromEntries(
    Array.from({ length: count }, (_, index) => [nameAt(index), textOfLength(random, index === 0 ? characters : 3)]),
  );
}

const VIEW_LIMITS: readonly LimitId[] = ['viewName', 'viewParameters', 'viewParameter', 'viewSql'];

function view(values: Values, random: Random): object {
  const [count, characters] = [values.get('viewParameters'), values.get('viewParameter')];
  const isOrdinary = count === undefined && characters === undefined;
  const sqlCharacters = values.get('viewSql');
  // Beside a statement they are refused, whatever their number.
  const others = isOrdinary ? {} : members(random, count ?? 1, characters ?? 3, (index) => `properties.p${index}[ne]`);
  if (sqlCharacters !== undefined || (isOrdinary && random() < 0.3)) {
    const sql = sqlCharacters === undefined ? pick(random, EXPENSIVE_STATEMENTS) : textOfLength(random, sqlCharacters);
    return { name: nameOf(values, random), report: 'sql', parameters: { sql, ...others } };
  }
  const ordinary = { range: pick(random, ['1h', '30d', '999m']), groupBy: 'event' };
  return { name: nameOf(values, random), report: 'series', parameters: isOrdinary ? ordinary : others };
}

const viewDoor = (method: 'POST' | 'PATCH'): Door =>
  bodyDoor({
    request: {
      service: 'query-api',
      ...(method === 'POST' ? { method, path: '/views', undo: '/views/{id}' } : { method, path: '/views/{view}' }),
    },
    limits: VIEW_LIMITS,
    bodyLimit: 'viewBody',
    body: view,
    answered: orInvalid(method === 'POST' ? CREATED : CHANGED),
  });

/** Views that the workspace does not have are refused, whatever their number. */
function dashboard(values: Values, random: Random): object {
  const count = values.get('dashboardTiles');
  const unknown = (index: number) => ({ view: `0197c0de-0000-7000-8000-${String(index).padStart(12, '0')}`, width: 1 });
  const note = { note: textOfLength(random, values.get('dashboardNote') ?? ORDINARY_CHARACTERS), width: 1 };
  const known = [{ view: '{view}', width: 2 }, note];
  return {
    name: nameOf(values, random),
    tiles:
      count === undefined
        ? known
        : [...known, ...Array.from({ length: count - known.length }, (_, index) => unknown(index))],
  };
}

const dashboardDoor = (method: 'POST' | 'PATCH'): Door =>
  bodyDoor({
    request: {
      service: 'query-api',
      ...(method === 'POST'
        ? { method, path: '/dashboards', undo: '/dashboards/{id}' }
        : { method, path: '/dashboards/{dashboard}' }),
    },
    limits: ['viewName', 'dashboardTiles', 'dashboardNote'],
    lists: { dashboardNote: 'dashboardTiles' },
    bodyLimit: 'viewBody',
    body: dashboard,
    answered: orInvalid(method === 'POST' ? CREATED : CHANGED),
  });

const linkDoor = bodyDoor({
  request: {
    ...{ service: 'query-api', method: 'POST', path: '/dashboards/{dashboard}/links' },
    undo: '/dashboards/{dashboard}/links/{id}',
  },
  limits: ['viewName'],
  bodyLimit: 'viewBody',
  body: (values, random) => ({ name: nameOf(values, random) }),
  answered: { ...CREATED, named: [['"vk_']] },
});

/** Conditions whose sets are dear: each looks at all events, or at all properties. */
function segment(values: Values, random: Random): object {
  const count = values.get('segmentConditions') ?? 3;
  const of = pick(random, ['users', 'organizations']);
  const days = { days: pick(random, [1, 36_500]) };
  const behaviour = Array.from({ length: Math.ceil(count / 2) }, (_, index) => ({
    ...{ did: textOfLength(random, ORDINARY_CHARACTERS), times: index % 3, ...(index > 0 && days) },
  }));
  return { of, behaviour, filters: members(random, Math.floor(count / 2), 3, (index) => `properties.p${index}[ne]`) };
}

const segmentDoor = bodyDoor({
  request: { service: 'query-api', method: 'PUT', path: `/segments/${HOSTILE_SEGMENT}` },
  limits: ['segmentConditions'],
  bodyLimit: 'segmentBody',
  body: segment,
  answered: { statuses: [200], named: [['"behaviour"']] },
});

/** Properties that nobody has: a search of another request then has nothing to look into. */
function naming(values: Values, random: Random): object {
  const characters = values.get('namingProperty') ?? ORDINARY_CHARACTERS;
  const properties = Array.from({ length: values.get('namingProperties') ?? 1 }, () =>
    textOfLength(random, characters),
  );
  const alternatives = Array.from({ length: values.get('namingAlternatives') ?? 1 }, () => properties);
  return { [pick(random, ['users', 'organizations'])]: { name: alternatives, email: properties.slice(0, 1) } };
}

const namingDoor = bodyDoor({
  request: { service: 'query-api', method: 'PUT', path: '/names/properties' },
  limits: ['namingAlternatives', 'namingProperties', 'namingProperty'],
  bodyLimit: 'namingBody',
  body: naming,
  answered: { statuses: [200], named: [['"organizations"']] },
});

/** Names that are all different, and have no dot. */
function fastProperties(values: Values): object {
  const others = Array.from({ length: (values.get('fastProperties') ?? 1) - 1 }, (_, index) => `p${index}`);
  return { properties: [...others, 'n'.repeat(values.get('fastProperty') ?? ORDINARY_CHARACTERS)] };
}

const fastDoor = bodyDoor({
  request: { service: 'query-api', method: 'PUT', path: '/properties/fast' },
  limits: ['fastProperties', 'fastProperty'],
  bodyLimit: 'fastBody',
  body: fastProperties,
  answered: { statuses: [200], named: [['"properties"']] },
});

const identitySettingsDoor = bodyDoor({
  request: { service: 'query-api', method: 'PUT', path: '/identities/settings' },
  bodyLimit: 'identitySettingsBody',
  body: (_, random) => ({ identity: pick(random, ['linked', 'raw']) }),
  answered: { statuses: [200], named: [['"identity"']] },
});

const keyDoor = bodyDoor({
  request: { service: 'query-api', method: 'POST', path: '/keys', undo: '/keys/{id}' },
  bodyLimit: 'keyBody',
  body: (_, random) => ({ scopes: [pick(random, ['ingest', 'query', 'sql'])] }),
  answered: CREATED,
});

/** A call that is rejected, too, so that the dead letter waits for the next request. */
const replayDoor = bodyDoor({
  request: { service: 'query-api', method: 'POST', path: '/dead-letters/{deadLetter}/replay' },
  bodyLimit: 'replayBody',
  body: (_, random) => ({ call: JSON.stringify({ type: 'track', text: textOfLength(random, ORDINARY_CHARACTERS) }) }),
  answered: { statuses: [409], named: [['"not_replayable"']] },
});

/** The key of a link reads one dashboard. */
const withLink = { authorization: 'Bearer {linkKey}' };

/** Views, dashboards, links, segments, settings, keys and dead letters. What a request creates it deletes again, by the route beside it. */
export const DOCUMENT_DOORS: Doors = {
  'GET /views': plainDoor({ service: 'query-api', method: 'GET', path: '/views' }),
  'POST /views': viewDoor('POST'),
  'GET /views/{id}': plainDoor({ service: 'query-api', method: 'GET', path: '/views/{view}' }),
  'PATCH /views/{id}': viewDoor('PATCH'),
  'DELETE /views/{id}': plainDoor({ service: 'query-api', method: 'DELETE', path: '/views/{dashboard}' }, [404]),
  'GET /dashboards': plainDoor({ service: 'query-api', method: 'GET', path: '/dashboards?limit=1' }),
  'POST /dashboards': dashboardDoor('POST'),
  'GET /dashboards/{id}': plainDoor({
    ...{ service: 'query-api', method: 'GET', path: '/dashboards/{dashboard}', headers: withLink },
  }),
  'PATCH /dashboards/{id}': dashboardDoor('PATCH'),
  'DELETE /dashboards/{id}': plainDoor({ service: 'query-api', method: 'DELETE', path: '/dashboards/{view}' }, [404]),
  'GET /dashboards/{id}/tiles/{view}': plainDoor(
    { service: 'query-api', method: 'GET', path: '/dashboards/{dashboard}/tiles/{view}?range=999m', headers: withLink },
    // Another request may have changed the tiles, or what the view reads; its report may be too expensive.
    [200, 400, 404],
  ),
  'GET /dashboards/{id}/links': plainDoor({
    ...{ service: 'query-api', method: 'GET', path: '/dashboards/{dashboard}/links' },
  }),
  'POST /dashboards/{id}/links': linkDoor,
  'DELETE /dashboards/{id}/links/{link}': plainDoor(
    { service: 'query-api', method: 'DELETE', path: '/dashboards/{view}/links/{link}' },
    [404],
  ),
  'GET /segments': plainDoor({ service: 'query-api', method: 'GET', path: '/segments' }),
  // Its conditions may be too dear.
  'GET /segments/{name}': plainDoor(
    { service: 'query-api', method: 'GET', path: `/segments/${HOSTILE_SEGMENT}` },
    [200, 400],
  ),
  'PUT /segments/{name}': segmentDoor,
  'DELETE /segments/{name}': plainDoor({ service: 'query-api', method: 'DELETE', path: '/segments/{view}' }, [404]),
  'GET /names/properties': plainDoor({ service: 'query-api', method: 'GET', path: '/names/properties' }),
  'PUT /names/properties': namingDoor,
  'GET /identities/settings': plainDoor({ service: 'query-api', method: 'GET', path: '/identities/settings' }),
  'PUT /identities/settings': identitySettingsDoor,
  'GET /properties/fast': plainDoor({ service: 'query-api', method: 'GET', path: '/properties/fast' }),
  'PUT /properties/fast': fastDoor,
  'GET /properties/fast/proposed': plainDoor({
    service: 'query-api',
    method: 'GET',
    path: '/properties/fast/proposed',
  }),
  // It may be too expensive.
  'GET /properties/fast/progress': plainDoor(
    { service: 'query-api', method: 'GET', path: '/properties/fast/progress' },
    [200, 400],
  ),
  'GET /keys': plainDoor({ service: 'query-api', method: 'GET', path: '/keys' }),
  'POST /keys': keyDoor,
  'DELETE /keys/{id}': plainDoor({ service: 'query-api', method: 'DELETE', path: '/keys/{view}' }, [404]),
  'GET /dead-letters': plainDoor({ service: 'query-api', method: 'GET', path: '/dead-letters?limit=1000' }),
  // The tenant has events of its own, once the first one is stored.
  'POST /example-data': plainDoor({ service: 'query-api', method: 'POST', path: '/example-data' }, [202, 409]),
  'DELETE /example-data': plainDoor({ service: 'query-api', method: 'DELETE', path: '/example-data' }, [202]),
  'GET /dead-letters/reasons': plainDoor({
    service: 'query-api',
    method: 'GET',
    path: '/dead-letters/reasons?limit=1000',
  }),
  'GET /dead-letters/{id}': plainDoor({ service: 'query-api', method: 'GET', path: '/dead-letters/{deadLetter}' }),
  'POST /dead-letters/{id}/replay': replayDoor,
};
