import { seededRandom } from '../random.ts';
import { bodyDoor, textOfLength } from './body-door.ts';
import { type Door, type Doors, type Expectation, HOSTILE_SEGMENT, type HostileRequest, plainDoor } from './door.ts';
import { lengthInHead, OTHER_HEAD_BYTES } from './head.ts';
import { LIMITS, type LimitId } from './limits.ts';
import { below, FLAVOURS, PRINTABLE, pick, type Random, textOf } from './texts.ts';

type Values = ReadonlyMap<LimitId, number>;

type Parameters = readonly (readonly [name: string, value: string])[];

/** Names of properties that the hostile workspace has: see `world.ts`. */
const STORED_NAMES = ['p', 'a.b.c.d.e.f.g', 'n0', "it's", 'long'] as const;

/** Names of events that are expensive to read: see `world.ts`. */
const STORED_EVENTS = ['near-equal', 'names', 'long'] as const;

const OPERATORS = ['eq', 'ne', 'in', 'exists', 'lt', 'gte', 'prefix', 'contains'] as const;

/** What an event without the property passes. */
const PASSED_OPERATORS = ['ne', 'ne', 'exists'] as const;

/** What names of stored properties begin with. */
const STORED_PREFIXES = ['e', 'equal-but-for-1', 'k', 'properties.'] as const;

const START_MS = Date.UTC(2026, 0, 1);
const MINUTE_MS = 60_000;

/** What a response to a valid query may be: it may also be too expensive. */
const ANSWERED: Expectation = {
  statuses: [200, 400],
  named: [['"results"', '"series"', '"steps"', '"cohorts"', '"query_too_expensive"', '"too_long"']],
};

/** Filters on properties, with values that fill the address. */
function filters(values: Values, random: Random, documents: readonly string[]): Parameters {
  const count = values.get('propertyFilters') ?? (values.has('dots') || values.has('items') ? 1 : 0);
  // Filters that everything passes are the ones after which there is work to do.
  const operators = random() < 0.6 ? PASSED_OPERATORS : OPERATORS;
  const room = Math.floor((LIMITS.head.max - OTHER_HEAD_BYTES - 1_500) / Math.max(count, 1));
  return Array.from({ length: count }, (_, index) => {
    const isFirst = index === 0;
    const dots = values.get('dots');
    const name = dots === undefined ? pick(random, STORED_NAMES) : nameOf(random, dots, room / 4);
    // Each name and operator may be given once.
    const operator = isFirst && values.has('items') ? 'in' : pick(random, operators);
    const parameter = `${pick(random, documents)}.${name}${index || ''}[${operator}]`;
    return [parameter, operandOf(operator, values, random, room - encodeURIComponent(parameter).length)] as const;
  });
}

/** The segment of the tenant, so many times. */
function segments(values: Values, random: Random): Parameters {
  const count = values.get('segmentsOfRequest') ?? 0;
  if (count === 0) return [];
  const names = Array.from({ length: count }, () => HOSTILE_SEGMENT).join(',');
  return [[`segment[${count === 1 ? pick(random, ['eq', 'ne']) : 'in'}]`, names]];
}

function nameOf(random: Random, dots: number, length: number): string {
  const segment = Math.max(1, Math.floor(below(random, length) / (dots + 1) / 12));
  const flavour = pick(
    random,
    PRINTABLE.filter((one) => one !== 'brackets'),
  );
  return Array.from({ length: dots + 1 }, () => textOf(flavour, segment)).join('.');
}

function operandOf(operator: (typeof OPERATORS)[number], values: Values, random: Random, room: number): string {
  if (operator === 'exists') return 'false';
  const flavour = pick(random, FLAVOURS);
  if (operator !== 'in') return fitting(random, room, (length) => textOf(flavour, length));
  const items = values.get('items') ?? 3;
  return fitting(random, room, (length) =>
    Array.from({ length: items }, (_, index) =>
      textOf(flavour, Math.max(Math.floor(length / items), 4), index + 1).replaceAll(/[\\,]/g, (one) => `\\${one}`),
    ).join(','),
  );
}

/** The longest of some texts that fits into an address; sometimes a short one. */
function fitting(random: Random, room: number, create: (length: number) => string): string {
  let length = random() < 0.2 ? 16 : room;
  let text = create(length);
  while (encodeURIComponent(text).length > room && length > 4) {
    length = Math.floor(length * 0.7);
    text = create(length);
  }
  return text;
}

/** Returns the faults that the response has to name, one for each limit that is exceeded. */
function faultsOf(values: Values): string[][] {
  return [...values].flatMap(([limit, value]) => {
    const { max, beyond } = LIMITS[limit];
    if (value <= max || beyond !== 'invalid_request' || limit === 'head') return [];
    return [[limit === 'within' ? `${max}d` : String(max)]];
  });
}

function expectationOf(values: Values, path: string, answered: Expectation): Expectation {
  if (isHeadOver(values, path)) return { statuses: [400], named: [['too long']] };
  const named = faultsOf(values);
  return named.length > 0 ? { statuses: [400], named: [['invalid_request'], ...named] } : answered;
}

function isHeadOver(values: Values, path: string): boolean {
  return (values.get('head') ?? 0) > LIMITS.head.max || path.length > LIMITS.head.max;
}

interface QueryDoorOptions {
  readonly limits?: readonly LimitId[];
  readonly parameters?: (values: Values, random: Random) => Parameters;
  /** What filters may be on. Default: those of events. */
  readonly documents?: readonly string[];
  readonly answered?: Expectation;
  readonly extra?: Partial<HostileRequest>;
}

const DOCUMENTS = ['properties', 'context', 'traits', 'user.properties', 'organization.properties'];

/** A stream refuses the segment of the tenant, which has behaviour. */
const STREAM_LIMITS: readonly LimitId[] = ['propertyFilters', 'dots', 'items'];

const FILTER_LIMITS: readonly LimitId[] = [...STREAM_LIMITS, 'segmentsOfRequest'];

/** A path of query-api that takes parameters. */
function queryDoor(path: string, options: QueryDoorOptions = {}): Door {
  const { limits = [], parameters = () => [], documents = DOCUMENTS, answered = ANSWERED, extra } = options;
  const hasFilters = limits.includes('propertyFilters');
  const isAboutEvents = documents === DOCUMENTS && hasFilters;
  return {
    limits: [...limits, 'head'],
    build(values, seed) {
      const random = seededRandom(seed);
      // Without corners, all of what is expensive; a stream reads only what is new.
      const isOfOneEvent = () => (values.size === 0 ? !extra?.endless : random() < 0.4);
      const found = [
        ...parameters(values, random),
        ...(hasFilters ? filters(values, random, documents) : []),
        ...segments(values, random),
        ...(isAboutEvents && isOfOneEvent() ? [['event', pick(random, STORED_EVENTS)] as const] : []),
      ];
      const query = found.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`).join('&');
      const target = query === '' ? path : `${path}?${query}`;
      const head = values.get('head');
      const headers: Record<string, string> = {};
      if (head !== undefined) {
        headers['x-padding'] = 'x'.repeat(Math.max(lengthInHead(head) - target.length, 0));
      }
      return {
        request: { service: 'query-api', method: 'GET', path: target, headers, ...extra },
        expected: expectationOf(values, target, answered),
      };
    },
  };
}

const iso = (ms: number) => new Date(ms).toISOString();

const events = queryDoor('/events', {
  limits: [...FILTER_LIMITS, 'page', 'offset', 'total'],
  parameters: (values, random) => [
    ...pageSize(values),
    ...(values.has('offset') ? [['offset', String(values.get('offset'))] as const] : []),
    // Numbers beyond the integers that floats hold have to be refused, and not rounded.
    ...(values.has('total') ? [['total', 'capped'] as const] : [['total', pick(random, ['exact', 'none'])] as const]),
    ['orderByField', pick(random, ['timestamp', 'timestamp', 'event', 'userId', 'uuid', 'receivedAt'])],
    ['orderByDirection', pick(random, ['ASC', 'DESC'])],
  ],
});

/** A property to group by. */
function groupOf(random: Random): string {
  return `${pick(random, ['', 'user.', 'organization.'])}properties.${pick(random, STORED_NAMES)}`;
}

const series = queryDoor('/events/series', {
  limits: [...FILTER_LIMITS, 'buckets', 'groupKeys', 'groups'],
  parameters(values, random) {
    const buckets = values.get('buckets') ?? 24;
    const keys = values.get('groupKeys') ?? (values.has('groups') ? 1 : 0);
    const names = ['event', groupOf(random), 'userId'].slice(0, keys);
    return [
      ['interval', 'minute'],
      ['startDate', iso(START_MS)],
      ['endDate', iso(START_MS + buckets * MINUTE_MS - 1)],
      [
        'measure',
        pick(random, ['count', 'users', 'organizations', 'sum:properties.n0', 'p99:properties.a.b.c.d.e.f.g']),
      ],
      ['timeZone', pick(random, ['UTC', 'Asia/Kathmandu', 'Europe/Dublin'])],
      ...(names.length > 0 ? [['groupBy', names.join(',')] as const] : []),
      ...(values.has('groups') ? [['groups', String(values.get('groups'))] as const] : []),
      ...(random() < 0.3 ? [['compare', 'previous'] as const] : []),
    ];
  },
});

const audits = queryDoor('/audits', {
  limits: ['buckets'],
  parameters: (values) => [
    ['interval', 'hour'],
    ['startDate', iso(START_MS)],
    ['endDate', iso(START_MS + (values.get('buckets') ?? 24) * 60 * MINUTE_MS - 1)],
  ],
  answered: { statuses: [200], named: [] },
});

const funnel = queryDoor('/events/funnel', {
  limits: [...FILTER_LIMITS, 'steps', 'within'],
  parameters(values, random) {
    const count = values.get('steps') ?? 2;
    const flavour = pick(random, FLAVOURS);
    const names = Array.from({ length: count }, (_, index) =>
      textOf(flavour, 40, index + 1).replaceAll(/[\\,]/g, (one) => `\\${one}`),
    );
    return [
      ['startDate', iso(START_MS)],
      ['steps', names.join(',')],
      ['within', `${values.get('within') ?? 7}d`],
      ['by', pick(random, ['user', 'organization'])],
      ...(random() < 0.5 ? [['groupBy', groupOf(random)] as const] : []),
    ];
  },
});

const retention = queryDoor('/events/retention', {
  limits: [...FILTER_LIMITS, 'periods', 'buckets'],
  parameters(values, random) {
    const days = values.get('buckets') ?? 30;
    return [
      ['startDate', iso(START_MS - (days - 1) * 1_440 * MINUTE_MS)],
      ['endDate', iso(START_MS + 1_440 * MINUTE_MS - 1)],
      ...(values.has('periods') ? [['periods', String(values.get('periods'))] as const] : []),
      ['by', pick(random, ['user', 'organization'])],
      ...(random() < 0.5 ? [['groupBy', groupOf(random)] as const] : []),
    ];
  },
});

const funnelPeople = queryDoor('/events/funnel/people', {
  limits: [...FILTER_LIMITS, 'page', 'steps', 'within'],
  parameters(values, random) {
    const count = values.get('steps') ?? 2;
    return [
      ['startDate', iso(START_MS)],
      ['steps', Array.from({ length: count }, () => pick(random, STORED_EVENTS)).join(',')],
      ['within', `${values.get('within') ?? 7}d`],
      ['step', '2'],
      ['dropped', pick(random, ['true', 'false'])],
      ...pageSize(values),
    ];
  },
});

const retentionPeople = queryDoor('/events/retention/people', {
  limits: [...FILTER_LIMITS, 'page', 'periods', 'buckets'],
  parameters(values) {
    const days = values.get('buckets') ?? 30;
    return [
      ['startDate', iso(START_MS - (days - 1) * 1_440 * MINUTE_MS)],
      ['endDate', iso(START_MS + 1_440 * MINUTE_MS - 1)],
      ['cohort', iso(START_MS)],
      ...(values.has('periods') ? [['periods', String(values.get('periods'))] as const] : []),
      ...pageSize(values),
    ];
  },
});

function pageSize(values: Values): Parameters {
  return values.has('page') ? [['limit', String(values.get('page'))]] : [];
}

function menu(path: string, parameters: (random: Random) => Parameters = () => []): Door {
  return queryDoor(path, {
    limits: [...FILTER_LIMITS, 'menu'],
    parameters: (values, random) => [
      ...parameters(random),
      ...(values.has('menu') ? [['limit', String(values.get('menu'))] as const] : []),
      ...(values.size > 0 && random() < 0.5 ? [['prefix', prefixOf(random)] as const] : []),
    ],
  });
}

function prefixOf(random: Random): string {
  return random() < 0.6 ? pick(random, STORED_PREFIXES) : textOf(pick(random, FLAVOURS), 1 + below(random, 200));
}

const entities = (path: string) =>
  queryDoor(path, {
    limits: [...FILTER_LIMITS, 'page'],
    documents: ['properties'],
    // Another request may have made the segment one of the others.
    answered: {
      ...{ statuses: [200, 400], named: ANSWERED.named.map((texts) => [...texts, 'must name segments of']) },
      refusals: ['invalid_request', 'query_too_expensive', 'too_long'],
    },
    parameters: (values, random) => [
      ...pageSize(values),
      ['orderByField', pick(random, ['id', 'firstSeenAt', 'lastSeenAt'])],
      ['orderByDirection', pick(random, ['ASC', 'DESC'])],
    ],
  });

const FOUND: Expectation = {
  statuses: [200, 400],
  named: [['"organizations"', '"query_too_expensive"', '"too_long"']],
};

/** Users and organizations by their identifiers, of which nobody needs to exist. */
const names = queryDoor('/names', {
  limits: ['items'],
  answered: FOUND,
  parameters: (values, random) => [[pick(random, ['users', 'organizations']), operandOf('in', values, random, 6_000)]],
});

const search = queryDoor('/search', {
  limits: ['searchText', 'searchResults'],
  answered: FOUND,
  parameters: (values, random) => [
    ['q', textOfLength(random, values.get('searchText') ?? 1 + below(random, 20))],
    ...(values.has('searchResults') ? [['limit', String(values.get('searchResults'))] as const] : []),
  ],
});

/** A path with an identifier in it, as long as its corner says. */
function entityDoor(prefix: string, suffix = ''): Door {
  return {
    limits: ['identifier'],
    build(values, seed) {
      const random = seededRandom(seed);
      const length = values.get('identifier') ?? 12;
      const id = textOf(pick(random, PRINTABLE), length);
      return {
        request: {
          service: 'query-api',
          method: 'GET',
          path: `${prefix}${encodeURIComponent(id)}${suffix}`,
          headers: {},
        },
        // Nobody of a longer identifier exists.
        expected: { statuses: [200, 404], named: [] },
      };
    },
  };
}

const stream: Door = {
  limits: [...STREAM_LIMITS, 'listeners', 'head', 'position'],
  build(values, seed) {
    const [copies, position] = [values.get('listeners') ?? 1, values.get('position')];
    const rest = new Map([...values].filter(([limit]) => limit !== 'listeners'));
    const ended = position !== undefined && position >= LIMITS.position.max;
    const days = position === undefined ? 0 : position + (ended ? 0.01 : 0);
    const after = Buffer.from(JSON.stringify([Math.floor(Date.now() / 1_000 - 86_400 * days), [0, 1]])).toString(
      'base64url',
    );
    const door = queryDoor('/events/stream', {
      limits: STREAM_LIMITS,
      parameters: () => (position === undefined ? [] : [['after', after]]),
      answered: {
        statuses: copies > LIMITS.listeners.max ? [429] : ended ? [410] : [200, 400],
        named: copies > LIMITS.listeners.max ? [['too_many_listeners']] : [],
      },
      extra: { endless: true, copies },
    });
    return door.build(rest, seed);
  },
};

const exported = queryDoor('/events/export', {
  limits: FILTER_LIMITS,
  parameters: (_, random) => [
    ['format', pick(random, ['ndjson', 'csv', 'parquet'])],
    ['startDate', iso(START_MS)],
  ],
  answered: { statuses: [200, 400], named: [] },
});

const fixed = (path: string) => queryDoor(path, { answered: { statuses: [200], named: [] } });

/** Passed on to ingest-api. */
function deletion(prefix: string): Door {
  return {
    limits: ['identifier'],
    build(values, seed) {
      const length = values.get('identifier') ?? 12;
      const id = textOf(pick(seededRandom(seed), PRINTABLE), length);
      const { max } = LIMITS.identifier;
      return {
        request: { service: 'query-api', method: 'DELETE', path: `${prefix}${encodeURIComponent(id)}`, headers: {} },
        expected: length > max ? { statuses: [400], named: [[String(max)]] } : { statuses: [202], named: [] },
      };
    },
  };
}

/** Passed on to ingest-api as well. */
const identityDoor = bodyDoor({
  request: { service: 'query-api', method: 'POST', path: '/identities' },
  bodyLimit: 'identityBody',
  body: (_, random) => ({ anonymousId: textOfLength(random, 12), userId: textOfLength(random, 12) }),
  answered: { statuses: [202], named: [['"accepted"']] },
});

/** A random one may make a chain. */
const mergeDoor = bodyDoor({
  request: { service: 'query-api', method: 'POST', path: '/identities/merge' },
  bodyLimit: 'identityBody',
  body: (_, random) => ({ userId: textOfLength(random, 12), into: textOfLength(random, 12) }),
  answered: { statuses: [202, 409], named: [] },
});

/** The routes of query-api that read events, users and organizations. */
export const QUERY_DOORS: Doors = {
  'GET /events': events,
  'GET /events/series': series,
  'GET /events/funnel': funnel,
  'GET /events/funnel/people': funnelPeople,
  'GET /events/retention': retention,
  'GET /events/retention/people': retentionPeople,
  'GET /events/names': menu('/events/names'),
  'GET /events/properties': menu('/events/properties', (random) => [
    ['of', pick(random, ['event', 'user', 'organization'])],
  ]),
  'GET /events/values': menu('/events/values', (random) => [
    ['property', pick(random, ['event', 'userId', groupOf(random)])],
  ]),
  'GET /overview': fixed('/overview'),
  'GET /events/stream': stream,
  'GET /events/export': exported,
  'GET /users': entities('/users'),
  'DELETE /users': deletion('/users?foreignId='),
  'GET /identities': entityDoor('/identities?userId='),
  'GET /identities/conflicts': fixed('/identities/conflicts'),
  'POST /identities': identityDoor,
  'DELETE /identities': deletion('/identities?anonymousId='),
  'GET /identities/merges': entityDoor('/identities/merges?into='),
  'POST /identities/merge': mergeDoor,
  'DELETE /identities/merge': deletion('/identities/merge?userId='),
  'GET /organizations': entities('/organizations'),
  'GET /users/{foreignId}': entityDoor('/users/'),
  'GET /users/{foreignId}/organizations': entityDoor('/users/', '/organizations'),
  'GET /users/{foreignId}/activity': entityDoor('/users/', '/activity'),
  'GET /organizations/{foreignUserGroupId}': entityDoor('/organizations/'),
  'GET /organizations/{foreignUserGroupId}/users': entityDoor('/organizations/', '/users'),
  'GET /organizations/{foreignUserGroupId}/activity': entityDoor('/organizations/', '/activity'),
  'GET /names': names,
  'GET /search': search,
  'GET /pipeline': fixed('/pipeline'),
  'GET /pipeline/history': fixed('/pipeline/history'),
  'GET /audits': audits,
  // For an operator alone.
  'GET /audits/workspaces': queryDoor('/audits/workspaces', {
    answered: { statuses: [403], named: [['missing_scope']] },
  }),
  'GET /console': fixed('/console/'),
  'GET /console/{file}': plainDoor({ service: 'query-api', method: 'GET', path: '/console/other.js' }, [404]),
};
