import fc, { sample } from '@sluice/shared/testing/fast-check';
import { parseJson } from '@sluice/shared/text/json';
import { BEHAVIOUR_DAYS_MAX, SEGMENTS_OF_REQUEST_MAX } from '../http/limits.ts';
import type { Condition } from '../records/filters/operators.ts';
import type { Owner } from '../records/owners/owners.ts';
import { conditionsFor, textOf } from './conditions.ts';
import {
  anEvent,
  aRegister,
  type QueryService,
  type TestApp,
  type TestEvent,
  type TestResponse,
} from './query-service.ts';
import { send } from './views.ts';

// The reference for questions about users and organizations: the properties and times that a fold over all changes gives are
// written onto each event, and events without owners are asked the same question about these.

export const START_MS = Date.UTC(2026, 2, 1);
const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
const WEEK_US = 7 * DAY_MS * 1_000;
const DAYS = 6;

const USERS = ['ada', 'bob', 'cem', 'dee', "o'\0h", 'ü'] as const;
const ORGANIZATIONS = ['acme', 'bolt', 'ada'] as const;

/** Names, some of which mean the same place. */
const NAMES = ['plan', 'n', 'a', 'a.b', 'a.b.c', "'; --"] as const;

const VALUES: readonly unknown[] = [
  'pro',
  'free',
  '',
  1,
  10,
  2.5,
  true,
  null,
  ['pro', 1],
  { b: 'pro' },
  { b: { c: 1 } },
];

/** A row about a user or an organization, and whose it is. */
export interface OwnerRow {
  readonly table: 'entities' | 'entity_properties' | 'user_deletions' | 'pending_deletions';
  readonly kind: Owner;
  readonly id: string;
  readonly row: Readonly<Record<string, unknown>>;
}

/** Events, what is stored about their users and organizations, and the reference. */
export interface OwnersWorld {
  readonly events: readonly TestEvent[];
  readonly rows: readonly OwnerRow[];
  /** The events that no deletion hides, with everything about their owners in `properties`. */
  readonly reference: readonly TestEvent[];
  /** The identifiers of those in each of {@link SEGMENTS}, in their order. */
  readonly members: Readonly<Record<string, readonly string[]>>;
}

/** What a fold knows of an owner. */
interface Known {
  readonly properties: Readonly<Record<string, unknown>>;
  readonly firstSeenAt: number;
  /** The events of it that no deletion hides. */
  readonly events: readonly TestEvent[];
}

const did = (known: Known, event: string) => known.events.filter((one) => one.event === event).length;
const isPro = ({ properties: { plan } }: Known) => [plan].flat().includes('pro');

/** Segments as they are stored, and who is in them. */
export const SEGMENTS = {
  pro: {
    body: { of: 'organizations', filters: { 'properties.plan': 'pro' } },
    has: isPro,
  },
  'not-pro': {
    body: { of: 'users', filters: { 'properties.plan[ne]': 'pro' }, behaviour: [{ did: 'open' }] },
    has: (known) => !isPro(known) && did(known, 'open') > 0,
  },
  late: {
    body: { of: 'users', filters: { 'firstSeenAt[gte]': '2026-03-02', 'properties.n[exists]': 'true' } },
    has: ({ firstSeenAt, properties }) => firstSeenAt >= START_MS + DAY_MS && properties['n'] !== undefined,
  },
  savers: {
    body: { of: 'users', behaviour: [{ did: 'save', times: 2, days: BEHAVIOUR_DAYS_MAX }] },
    has: (known) => did(known, 'save') >= 2,
  },
  idle: {
    body: { of: 'organizations', behaviour: [{ did: 'pay', times: 0 }] },
    has: (known) => did(known, 'pay') === 0,
  },
  never: {
    body: { of: 'users', filters: { 'properties.plan[exists]': 'false' }, behaviour: [{ did: 'pay', times: 0 }] },
    has: (known) => known.properties['plan'] === undefined && did(known, 'pay') === 0,
  },
} as const satisfies Record<string, { readonly body: object; readonly has: (known: Known) => boolean }>;

const SEGMENT_NAMES = Object.keys(SEGMENTS) as readonly (keyof typeof SEGMENTS)[];

function kindOf(name: keyof typeof SEGMENTS): Owner {
  return SEGMENTS[name].body.of === 'users' ? 'user' : 'organization';
}

interface Change {
  readonly kind: Owner;
  readonly id: string;
  readonly property: string;
  readonly onceWeek: number;
  /** When it was accepted, in microseconds. */
  readonly acceptedUs: number;
  readonly operation: 'set' | 'remove';
  readonly value: unknown;
}

const ACCEPTED_US = (START_MS + DAYS * DAY_MS) * 1_000;

const anyOwner = fc.oneof(
  fc.record({ kind: fc.constant<Owner>('user'), id: fc.constantFrom(...USERS) }),
  fc.record({ kind: fc.constant<Owner>('organization'), id: fc.constantFrom(...ORGANIZATIONS) }),
);

const anyEvent = fc
  .record({
    uuid: fc.uuid(),
    event: fc.constantFrom('open', 'save', 'pay'),
    userId: fc.constantFrom('', 'nobody', ...USERS),
    groupId: fc.constantFrom('', 'nobody', ...ORGANIZATIONS),
    timestampMs: fc.nat(DAYS * 24).map((hours) => START_MS + hours * HOUR_MS),
    receivedAtUs: fc.nat(200).map((us) => ACCEPTED_US + us),
    properties: fc.constantFrom('{}', '{"plan":"pro"}', '{"plan":"free"}'),
  })
  .map(anEvent);

/** Generates a world. Some users are deleted, and some of those came back. */
export function ownersWorld(eventCount: number): OwnersWorld {
  const events = sample(anyEvent, eventCount);
  const times = sample(fc.nat(200), 200);
  const owners = sample(anyOwner, times.length);
  const changes = owners.map(({ kind, id }, index): Change => {
    const [property = ''] = sample(fc.constantFrom(...NAMES), 1);
    const [value] = sample(fc.constantFrom(...VALUES), 1);
    const acceptedUs = ACCEPTED_US + (times[index] as number) + index / 1_000;
    const isRemoved = index % 7 === 0;
    const [choice = 0] = sample(fc.nat(3), 1);
    const onceWeek =
      isRemoved || choice > 1 ? 0 : choice === 1 && kind === 'user' ? Math.floor(acceptedUs / WEEK_US) : 1;
    return {
      kind,
      id,
      property,
      onceWeek,
      acceptedUs: Math.round(acceptedUs),
      operation: isRemoved ? 'remove' : 'set',
      value,
    };
  });
  // Versions tell changes apart.
  const distinct = [
    ...new Map(
      changes.map((change) => [`${change.kind} ${change.id} ${change.property} ${change.acceptedUs}`, change]),
    ).values(),
  ];
  const deletions = new Map<string, number>([
    ['bob', ACCEPTED_US + 80],
    ['cem', ACCEPTED_US + 120],
    ["o'\0h", ACCEPTED_US + 300],
  ]);
  const deletedUs = ({ kind, id }: { readonly kind: Owner; readonly id: string }) =>
    kind === 'user' ? (deletions.get(id) ?? 0) : 0;
  const shown = events.filter(({ userId, receivedAtUs }) => receivedAtUs > deletedUs({ kind: 'user', id: userId }));
  const seen = seenOwners(events, shown, deletedUs);
  const rows = [
    ...distinct.map(registerRow),
    ...[...deletions].flatMap(([id, version]) => [
      { table: 'user_deletions', kind: 'user', id, row: { user_id: id, version } } as const,
      { table: 'pending_deletions', kind: 'user', id, row: { user_id: id, version, stored_at: 1 } } as const,
    ]),
    ...seen.rows,
  ];
  const knownOf = (kind: Owner, id: string) => ({
    ...seen.times.get(`${kind} ${id}`),
    properties: foldedProperties(
      distinct.filter((change) => change.kind === kind && change.id === id),
      deletedUs({ kind, id }),
    ),
  });
  const members = Object.fromEntries(
    SEGMENT_NAMES.map((name) => [name, membersOf(name, shown, (kind, id) => knownOf(kind, id))]),
  );
  const segmentsOf = (kind: Owner, id: string) =>
    SEGMENT_NAMES.filter((name) => kindOf(name) === kind && members[name]?.includes(id));
  const reference = shown.map((event) => {
    const known = JSON.stringify({
      ...(parseJson(event.properties) as object),
      ...(event.userId && {
        user: { ...knownOf('user', event.userId), segments: segmentsOf('user', event.userId) },
      }),
      ...(event.groupId && {
        organization: {
          ...knownOf('organization', event.groupId),
          segments: segmentsOf('organization', event.groupId),
        },
      }),
    });
    return { ...event, properties: known };
  });
  return { events, rows, reference, members };
}

/** The identifiers of those in a segment, in their order. An organization is there although all events of it are hidden. */
function membersOf(
  name: keyof typeof SEGMENTS,
  shown: readonly TestEvent[],
  knownOf: (kind: Owner, id: string) => Partial<Known>,
): readonly string[] {
  const kind = kindOf(name);
  const field = kind === 'user' ? 'userId' : 'groupId';
  return ['nobody', ...(kind === 'user' ? USERS : ORGANIZATIONS)]
    .filter((id) => {
      const { properties = {}, firstSeenAt } = knownOf(kind, id);
      if (firstSeenAt === undefined) return false;
      return SEGMENTS[name].has({ properties, firstSeenAt, events: shown.filter((event) => event[field] === id) });
    })
    .sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
}

function registerRow({ kind, id, property, onceWeek, acceptedUs, operation, value }: Change): OwnerRow {
  const version =
    onceWeek === 0 ? acceptedUs : onceWeek === 1 ? 2_650_000_000_000_000 - acceptedUs : acceptedUs % WEEK_US;
  const register = aRegister(version, operation, operation === 'set' ? JSON.stringify(value) : '');
  return { table: 'entity_properties', kind, id, row: { kind, id, property, register, once_week: onceWeek } };
}

/** What the changes of one user or organization come to: what was set last, or else set once first. */
function foldedProperties(changes: readonly Change[], deletedUs: number): Record<string, unknown> {
  const folded: Record<string, unknown> = {};
  for (const [property, all] of Map.groupBy(changes, (change) => change.property)) {
    const counting = all.filter(
      ({ acceptedUs, onceWeek }) => deletedUs === 0 || (acceptedUs > deletedUs && onceWeek !== 1),
    );
    const byTime = counting.toSorted((one, other) => one.acceptedUs - other.acceptedUs);
    const set = byTime.filter(({ onceWeek }) => onceWeek === 0).at(-1);
    const once = byTime.find(({ onceWeek }) => onceWeek === 1);
    const winner = set ?? once ?? byTime.filter(({ onceWeek }) => onceWeek > 1).at(-1);
    if (winner?.operation === 'set') Object.defineProperty(folded, property, { value: winner.value, enumerable: true });
  }
  return folded;
}

/** Rows of `entities`, and the times that they come to. Of those who came back, some have a row since the deletion. */
function seenOwners(
  events: readonly TestEvent[],
  shown: readonly TestEvent[],
  deletedUs: (owner: { readonly kind: Owner; readonly id: string }) => number,
) {
  const rows: OwnerRow[] = [];
  const times = new Map<string, { readonly firstSeenAt: number; readonly lastSeenAt: number }>();
  for (const [kind, field] of [
    ['user', 'userId'],
    ['organization', 'groupId'],
  ] as const) {
    for (const [id, all] of Map.groupBy(events, (event) => event[field])) {
      if (id === '') continue;
      const deletion = deletedUs({ kind, id });
      const since = shown.filter((event) => event[field] === id);
      const row = (other_id: string, some: readonly TestEvent[]) => {
        const [first = START_MS, ...others] = some
          .map(({ timestampMs }) => timestampMs)
          .sort((one, other) => one - other);
        const version = Math.max(...some.map(({ receivedAtUs }) => receivedAtUs));
        rows.push({
          table: 'entities',
          ...{ kind, id },
          row: { kind, id, other_id, first_seen_at: first, last_seen_at: others.at(-1) ?? first, version },
        });
      };
      if (deletion === 0 || since.length === 0 || id !== 'bob') for (const event of all) row('', [event]);
      else for (const event of since) row(String(deletion), [event]);
      const seen = kind === 'user' ? since : all;
      if (seen.length === 0) continue;
      const ms = seen.map(({ timestampMs }) => timestampMs);
      times.set(`${kind} ${id}`, { firstSeenAt: Math.min(...ms), lastSeenAt: Math.max(...ms) });
    }
  }
  return { rows, times };
}

/** A question, as it is asked, and as the reference is asked it. */
export interface Question {
  readonly asked: string;
  readonly expected: string;
}

interface Part {
  readonly asked: readonly [string, string];
  readonly expected: readonly [string, string];
}

const anyKind = fc.constantFrom<Owner>('user', 'organization');
const anyName = fc.constantFrom(...NAMES, 'seats', 'a.b.c.d');
const anyCondition: fc.Arbitrary<Condition> = fc
  .tuple(fc.constantFrom(...VALUES), fc.constantFrom(...VALUES))
  .chain(([value, other]) => conditionsFor(value, other))
  .filter((condition) => textOf(condition, true) !== '');

const anyPropertyFilter = fc
  .tuple(anyKind, anyName, anyCondition)
  .map(([kind, name, condition]) => part(`${kind}.properties.${name}[${condition.operator}]`, textOf(condition, true)));

const anyTimeFilter = fc
  .tuple(
    anyKind,
    fc.constantFrom('firstSeenAt', 'lastSeenAt'),
    fc.constantFrom('lt', 'lte', 'gt', 'gte'),
    fc.nat(DAYS * 24),
  )
  .map(([kind, time, operator, hours]): Part => {
    const ms = START_MS + hours * HOUR_MS;
    const name = `${kind}.${time}[${operator}]`;
    return { asked: [name, new Date(ms).toISOString()], expected: [`properties.${name}`, String(ms)] };
  });

/** A filter by a segment, or by several of one kind. */
const anySegmentFilter = fc
  .tuple(fc.constantFrom(...SEGMENT_NAMES), fc.constantFrom('eq', 'ne', 'in'))
  .map(([name, operator]): Part => {
    const ofKind = SEGMENT_NAMES.filter((one) => kindOf(one) === kindOf(name));
    // A question may also name one by each of the other operators.
    const names = operator === 'in' ? ofKind.slice(0, SEGMENTS_OF_REQUEST_MAX - 2).join(',') : name;
    return {
      asked: [`segment[${operator}]`, names],
      expected: [`properties.${kindOf(name)}.segments[${operator}]`, names],
    };
  });

const anyEventFilter = fc.constantFrom<Part>(
  ...[
    ['event[in]', 'open,save'],
    ['properties.plan', 'pro'],
    ['groupId[exists]', 'true'],
  ].map(([name = '', value = '']) => same(name, value)),
);

const anyFilters = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: anyPropertyFilter },
    { weight: 1, arbitrary: anyTimeFilter },
    { weight: 2, arbitrary: anySegmentFilter },
    { weight: 1, arbitrary: anyEventFilter },
  ),
  { maxLength: 3 },
);

/** What is asked, besides filters and groups; reports have a range. */
const READS = [
  '/events?limit=1000',
  '/events?limit=5',
  '/events?limit=3&orderByDirection=ASC',
  '/events?limit=7&total=capped&orderByField=uuid',
  '/events/names?',
  '/events/values?property=groupId',
  '/events/properties?prefix=pl',
] as const;

const RANGE = 'startDate=2026-03-01&endDate=2026-03-07';

const REPORTS = [
  `/events/funnel/people?${RANGE}&steps=open,save&step=1`,
  `/events/retention/people?${RANGE}&cohort=2026-03-02&by=organization`,
  `/events/export?${RANGE}&format=ndjson`,
] as const;

const GROUPED_REPORTS = [
  `/events/series?${RANGE}&interval=day`,
  `/events/series?${RANGE}&interval=none&measure=users&compare=previous`,
  `/events/funnel?${RANGE}&steps=open,save&within=4d`,
  `/events/funnel?${RANGE}&steps=open,save,pay&by=organization&within=4d`,
  `/events/retention?${RANGE}&periods=4`,
  `/events/retention?${RANGE}&event=open&returnEvent=save&by=organization`,
] as const;

/** A group by a property of an owner. */
const anyGroup = fc.tuple(anyKind, fc.constantFrom('plan', 'n', 'a', 'a.b', 'a.b.c')).map(([kind, name]): Part => {
  const value = `${kind}.properties.${name}`;
  return { asked: ['groupBy', value], expected: ['groupBy', `properties.${value}`] };
});

/** What is asked of the properties of owners, and the same of the reference. */
const MENUS = [
  [
    '/events/values?property=organization.properties.plan',
    '/events/values?property=properties.organization.properties.plan',
  ],
  ['/events/values?property=user.properties.a.b', '/events/values?property=properties.user.properties.a.b'],
  ['/events/properties?of=user', '/events/properties?prefix=user.properties.'],
  ['/events/properties?of=organization&prefix=a', '/events/properties?prefix=organization.properties.a'],
] as const;

const anyQuestion = fc
  .tuple(
    fc.constantFrom(...[...READS, ...REPORTS, ...GROUPED_REPORTS].map((read) => [read, read] as const), ...MENUS),
    anyFilters,
    fc.nat(3),
    fc.option(anyGroup),
  )
  .map(([[asked, expected], filters, step, group]): Question => {
    const isGrouped = (GROUPED_REPORTS as readonly string[]).includes(asked);
    const isOfStep = asked.startsWith('/events/funnel?') && step === 0;
    const given = [
      ...filters.map((filter) => (isOfStep ? ofStep(filter) : filter)),
      ...(isGrouped && group ? [group] : []),
    ];
    // One name asks for users and for organizations in a segment, of which the reference has two.
    const parts = [...new Map(given.toReversed().map((part) => [part.asked[0], part])).values()];
    return { asked: withParts(asked, parts, 'asked'), expected: withParts(expected, parts, 'expected') };
  });

/** A parameter is given once: that of the read counts. */
function withParts(read: string, parts: readonly Part[], side: 'asked' | 'expected'): string {
  const [path, query] = read.split('?');
  const given = [...parts.map((one) => one[side]), ...new URLSearchParams(query)];
  return `${path}?${new URLSearchParams([...new Map(given.map(([name, value]) => [name, value]))])}`;
}

/** Returns random questions: other ones with each call. */
export function ownerQuestions(count: number): readonly Question[] {
  return sample(anyQuestion, count);
}

function part(name: string, value: string): Part {
  return { asked: [name, value], expected: [`properties.${name}`, value] };
}

function same(name: string, value: string): Part {
  return { asked: [name, value], expected: [name, value] };
}

/** Filters by times and fields cannot be of a step. */
function ofStep(filter: Part): Part {
  const [name, value] = filter.asked;
  if (!name.includes('properties.') && !name.startsWith('segment')) return filter;
  return { asked: [`step2.${name}`, value], expected: [`step2.${filter.expected[0]}`, value] };
}

/** Asks a question, of which an answer need not be JSON. */
export async function ask({ app }: Pick<TestApp, 'app'>, url: string, workspace: string): Promise<Answer> {
  const response = await app.inject({ url, headers: { authorization: `Bearer ${workspace}` } });
  return { status: response.statusCode, text: response.body };
}

type Answer = Pick<TestResponse, 'status' | 'text'>;

/** Returns what has to be equal in two responses. */
export function comparable({ status, text }: Answer): unknown {
  const isLines = status === 200 && text.startsWith('{"uuid"');
  const body = (
    isLines
      ? {
          results: text
            .trim()
            .split('\n')
            .map((line) => JSON.parse(line)),
        }
      : text === ''
        ? {}
        : JSON.parse(text)
  ) as Record<string, unknown>;
  // The reference has no filters by organizations, so it does not say what there would be without them.
  const { groupBy: _, nextCursor: __, withoutOrganizationFilters: ___, results, ...rest } = body;
  const records = (results as readonly Record<string, unknown>[] | undefined)?.map(
    ({ properties: _properties, ...record }) => record,
  );
  // The reference has what is known of owners inside the properties of its events.
  const kept = records?.map(({ path, ...record }) =>
    path === undefined
      ? record
      : { ...record, path: String(path).replace(/^properties\.(?=user\.|organization\.)/, '') },
  );
  return { status, ...rest, results: kept };
}

/** Stores {@link SEGMENTS} in a workspace. */
export async function putSegments(query: Pick<QueryService, 'app'>, workspace: string): Promise<void> {
  for (const name of SEGMENT_NAMES) {
    const { status, body } = await send(query, 'PUT', `/segments/${name}`, SEGMENTS[name].body, `admin-${workspace}`);
    if (status !== 200) throw new Error(`segment ${name}: ${JSON.stringify(body)}`);
  }
}

/** The tables that a world is stored in, in an order in which no row is missed. */
export const OWNER_TABLES = ['user_deletions', 'pending_deletions', 'entities', 'entity_properties'] as const;
