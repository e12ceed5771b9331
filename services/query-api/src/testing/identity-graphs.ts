import { mergeKeyOf } from '@sluice/shared/rows/merged-user';
import fc from '@sluice/shared/testing/fast-check';
import { expect } from 'vitest';
import { anEvent, type QueryService, type TestEvent } from './query-service.ts';

// Who anonymous visitors are, in small random workspaces, and what each read has to answer: computed from the facts one by one, in
// the order of their versions.

/** A fact about a visitor, as `identity_links` has it. */
export interface Fact {
  readonly anonymousId: string;
  /** Empty: nobody. */
  readonly userId: string;
  readonly version: number;
  readonly said: 0 | 1;
}

/** What somebody said of a user. */
export interface Merge {
  readonly userId: string;
  /** Whom the user became. Empty: it is taken back. */
  readonly into: string;
  readonly version: number;
}

/** What a workspace has. */
export interface IdentityGraph {
  readonly events: readonly TestEvent[];
  readonly facts: readonly Fact[];
  /** Some make chains and circles, which requests that come at the same time may do. */
  readonly merges: readonly Merge[];
  /** The user whose deletion is pending, and its version. */
  readonly deletion: { readonly userId: string; readonly version: number } | undefined;
}

const START_MS = Date.UTC(2026, 2, 1);
const DAY_MS = 86_400_000;
const RECEIVED_US = START_MS * 1_000;

const VISITORS = ['v1', 'v2', "v'3", 'ada', 'v5'];
const USERS = ['ada', 'bob', 'cem', "o'\\h"];
const NAMES = ['visited', 'signed_up', 'paid'];

const anyVersion = fc.nat(12).map((place) => RECEIVED_US + place);

const anyFact = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      ...{ anonymousId: fc.constantFrom(...VISITORS), userId: fc.constantFrom(...USERS) },
      ...{ version: anyVersion, said: fc.constant(0 as const) },
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      ...{ anonymousId: fc.constantFrom(...VISITORS), userId: fc.constantFrom('', ...USERS) },
      ...{ version: anyVersion, said: fc.constant(1 as const) },
    }),
  },
);

const anyMerge = fc.record({
  userId: fc.constantFrom(...USERS),
  into: fc.constantFrom('', ...USERS, ...USERS),
  version: anyVersion,
});

const anyGraphEvent = fc
  .record({
    uuid: fc.uuid(),
    timestampMs: fc.nat(5 * 24).map((hours) => START_MS + hours * (DAY_MS / 24)),
    receivedAtUs: anyVersion,
    event: fc.constantFrom(...NAMES),
    userId: fc.constantFrom('', '', ...USERS),
    anonymousId: fc.constantFrom('', ...VISITORS, ...VISITORS),
    groupId: fc.constantFrom('', 'acme'),
    properties: fc.constantFrom('{}', '{"plan":"pro"}'),
  })
  .map(anEvent);

/** A workspace, with its facts in the order in which they are stored. */
export const anyGraph: fc.Arbitrary<IdentityGraph> = fc.record({
  events: fc.array(anyGraphEvent, { minLength: 5, maxLength: 30 }),
  facts: fc.array(anyFact, { maxLength: 14 }),
  merges: fc.array(anyMerge, { maxLength: 4 }),
  deletion: fc.option(fc.record({ userId: fc.constantFrom(...USERS), version: anyVersion }), { nil: undefined }),
});

/** Stores a graph: its facts in several inserts, some of them twice. */
export async function storeGraph(query: QueryService, workspace: string, graph: IdentityGraph): Promise<void> {
  const { events, deletion } = graph;
  if (deletion) {
    const { userId: user_id, version } = deletion;
    await query.insert('pending_deletions', [{ workspace_id: workspace, user_id, version, stored_at: 1 }]);
  }
  const merges = graph.merges.map(({ userId, into, version }): Fact => {
    return { anonymousId: mergeKeyOf(userId), userId: into, version, said: 1 };
  });
  const rows = [...graph.facts, ...merges].map(({ anonymousId, userId, version, said }) => ({
    ...{ workspace_id: workspace, anonymous_id: anonymousId, user_id: userId, version, said },
  }));
  const half = Math.ceil(rows.length / 2);
  for (const part of [rows.slice(half), rows.slice(0, half + 2)]) {
    if (part.length > 0) await query.insert('identity_links', part);
  }
  await query.store(workspace, events.slice(0, 7));
  await query.store(workspace, events.slice(7));
}

/** Returns the fact that decides, of facts in their order; undefined: nobody. */
function decidingOf(facts: readonly Fact[]): Fact | undefined {
  const deciding = facts.findLast(({ said }) => said === 1) ?? facts[0];
  return deciding?.userId === '' ? undefined : deciding;
}

/** What a workspace has to answer. */
export class IdentityReference {
  readonly #graph: IdentityGraph;

  constructor(graph: IdentityGraph) {
    this.#graph = graph;
    this.#deletedUsers = this.#reachedBy(graph);
  }

  /** The users whom the deletion reaches: the deleted one, those who were merged into it then, and so on. */
  readonly #deletedUsers: ReadonlySet<string>;

  /** The facts of a visitor that count, the first one first. */
  #factsOf(anonymousId: string): readonly Fact[] {
    return this.#allFactsOf(anonymousId).filter(({ userId, version }) => !this.#isDeleted(userId, version));
  }

  #isDeleted(user: string, version: number): boolean {
    const { deletion } = this.#graph;
    return deletion !== undefined && this.#deletedUsers.has(user) && version <= deletion.version;
  }

  /** Returns what of the last merges counts, one by one: whom each user became. */
  #became(merges: readonly Merge[]): ReadonlyMap<string, string> {
    const order = (one: Merge, other: Merge) => one.version - other.version || byBytes(one.into, other.into);
    const last = new Map(merges.toSorted(order).map(({ userId, into }) => [userId, into]));
    return new Map([...last].filter(([, into]) => into !== ''));
  }

  #reachedBy({ deletion, merges }: IdentityGraph): ReadonlySet<string> {
    if (!deletion) return new Set();
    const became = this.#became(merges.filter(({ version }) => version <= deletion.version));
    const reached = new Set([deletion.userId]);
    for (const user of reached) for (const [merged, into] of became) if (into === user) reached.add(merged);
    return reached;
  }

  /** Whom each user became as somebody said last, also where that does not count. */
  get saidMerges(): ReadonlyMap<string, string> {
    const counts = ({ userId, into, version }: Merge) =>
      !this.#isDeleted(userId, version) && !this.#isDeleted(into, version);
    return this.#became(this.#graph.merges.filter(counts));
  }

  /** A chain does not count: its users become nobody else. */
  whomBecame(user: string): string {
    const into = this.saidMerges.get(user);
    return into === undefined || this.saidMerges.has(into) ? user : into;
  }

  #allFactsOf(anonymousId: string): readonly Fact[] {
    const order = (one: Fact, other: Fact) => one.version - other.version || byBytes(one.userId, other.userId);
    return this.#graph.facts.filter((fact) => fact.anonymousId === anonymousId).toSorted(order);
  }

  /** The fact that decides whose a visitor is; undefined: nobody's. */
  decidingFact(anonymousId: string): Fact | undefined {
    return decidingOf(this.#factsOf(anonymousId));
  }

  /** Whether a visitor was that of a deleted user when that was deleted. */
  #isDeletedVisitor(anonymousId: string): boolean {
    const { deletion } = this.#graph;
    const facts = this.#allFactsOf(anonymousId).filter(({ version }) => deletion && version <= deletion.version);
    return this.#deletedUsers.has(decidingOf(facts)?.userId ?? '');
  }

  /** Whom the user of an event became, or that of its visitor; empty for nobody. */
  personOf({ userId, anonymousId }: TestEvent): string {
    return this.whomBecame(userId || (this.decidingFact(anonymousId)?.userId ?? ''));
  }

  /** The events that no deletion hides. */
  get shown(): readonly TestEvent[] {
    const { events, deletion } = this.#graph;
    return events.filter(({ userId, anonymousId, receivedAtUs }) => {
      const isOfDeleted = userId === '' ? this.#isDeletedVisitor(anonymousId) : this.#deletedUsers.has(userId);
      return !deletion || !isOfDeleted || receivedAtUs > deletion.version;
    });
  }

  /** The conflicts: visitor, owner, the other user, and the version of the first link to that. */
  get conflicts(): readonly (readonly [string, string, string, number])[] {
    return VISITORS.toSorted().flatMap((anonymousId) => {
      const facts = this.#factsOf(anonymousId);
      const owner = facts[0]?.userId ?? '';
      if (facts.some(({ said }) => said === 1)) return [];
      const others = [...new Set(facts.map(({ userId }) => userId))].filter((user) => user !== owner).toSorted();
      return others.map((other) => {
        const first = facts.find(({ userId }) => userId === other);
        return [anonymousId, owner, other, first?.version ?? 0] as const;
      });
    });
  }
}

const RANGE = 'startDate=2026-03-01&endDate=2026-03-31';

const distinct = (values: readonly string[]) => new Set(values.filter((value) => value !== '')).size;

/** Returns what a path responds. */
type Get = (path: string) => Promise<Record<string, unknown>>;

/** Compares each read of a workspace with its reference. */
export async function expectIdentities(query: QueryService, workspace: string, graph: IdentityGraph): Promise<void> {
  const reference = new IdentityReference(graph);
  const get: Get = async (path) => {
    const { status, body } = await query.get(path, workspace);
    expect([path, status, body]).toEqual([path, 200, expect.anything()]);
    return body as unknown as Record<string, unknown>;
  };
  await expectFiltered(get, reference);
  await expectReports(get, reference);
  await expectLinks(get, reference);
  const headers = { authorization: `Bearer ${workspace}` };
  const { body } = await query.app.inject({ url: `/events/export?${RANGE}&userId=ada&identity=linked`, headers });
  const records = body.trimEnd().split('\n').slice(0, -1);
  expect(uuidsOf(records.map((record) => JSON.parse(record)))).toEqual(
    uuidsOf(reference.shown.filter((event) => reference.personOf(event) === reference.whomBecame('ada'))),
  );
}

interface Page {
  readonly total: number;
  readonly results: readonly { readonly uuid: string; readonly linkedUserId: string | null }[];
}

async function expectFiltered(get: Get, reference: IdentityReference): Promise<void> {
  const page = async (identity: string, filter: string) =>
    (await get(`/events?identity=${identity}&limit=1000&${filter}`)) as unknown as Page;
  for (const [filter, holds] of FILTERS) {
    const linked = await page('linked', filter);
    const became = (user: string) => reference.whomBecame(user);
    const found = reference.shown.filter((event) => holds(reference.personOf(event), became));
    const expected = new Map(found.map((event) => [event.uuid, reference.personOf(event) || null]));
    expect([filter, new Map(linked.results.map((one) => [one.uuid, one.linkedUserId]))]).toEqual([filter, expected]);
    expect([filter, linked.total]).toEqual([filter, found.length]);
    const raw = await page('raw', filter);
    const named = reference.shown.filter(({ userId }) => holds(userId, (user) => user));
    expect([filter, uuidsOf(raw.results)]).toEqual([filter, uuidsOf(named)]);
    const series = `/events/series?${RANGE}&interval=none&identity=linked&${filter}`;
    expect([filter, (await get(series))['total']]).toEqual([filter, found.length]);
    const persons = found.map((event) => reference.personOf(event) || (event.anonymousId && `?${event.anonymousId}`));
    expect([filter, (await get(`${series}&measure=users`))['total']]).toEqual([filter, distinct(persons)]);
  }
}

function uuidsOf(events: readonly { readonly uuid: string }[]): readonly string[] {
  return events.map(({ uuid }) => uuid).toSorted();
}

async function expectReports(get: Get, reference: IdentityReference): Promise<void> {
  const { shown } = reference;
  const linked = (event: TestEvent) => reference.personOf(event);
  const byUser = await get(`/events/series?${RANGE}&interval=none&groupBy=userId&identity=linked&groups=100`);
  const series = byUser['series'] as { group: [string | null]; total: number }[];
  expect(new Map(series.map(({ group: [user], total }) => [user, total]))).toEqual(
    new Map([...Map.groupBy(shown, linked)].map(([user, events]) => [user || null, events.length])),
  );
  for (const [identity, personOf] of [
    ['linked', linked],
    ['raw', (event: TestEvent) => event.userId],
  ] as const) {
    const persons = Map.groupBy(shown, personOf);
    persons.delete('');
    const funnel = await get(`/events/funnel?${RANGE}&steps=visited,paid&within=30d&identity=${identity}`);
    const reached = [...persons.values()].map((events) => stepsOf(events, ['visited', 'paid']));
    expect([identity, (funnel['steps'] as { count: number }[]).map(({ count }) => count)]).toEqual([
      identity,
      [1, 2].map((steps) => reached.filter((one) => one >= steps).length),
    ]);
    const retention = await get(`/events/retention?${RANGE}&periods=1&identity=${identity}`);
    const sizes = (retention['cohorts'] as { size: number }[]).map(({ size }) => size);
    expect([identity, sizes.reduce((sum, size) => sum + size, 0)]).toEqual([identity, persons.size]);
  }
  const people = await get(`/events/funnel/people?${RANGE}&steps=visited,paid&within=30d&step=1&identity=linked`);
  const visited = shown.filter(({ event }) => event === 'visited').map(linked);
  expect((people['results'] as { id: string }[]).map(({ id }) => id)).toEqual(
    [...new Set(visited.filter((id) => id !== ''))].toSorted(byBytes),
  );
  const cohort = `${RANGE}&interval=month&periods=1&cohort=2026-03-01`;
  const came = await get(`/events/retention/people?${cohort}&identity=linked`);
  expect((came['results'] as { id: string }[]).map(({ id }) => id)).toEqual(
    [...new Set(shown.map(linked).filter((id) => id !== ''))].toSorted(byBytes),
  );
}

async function expectLinks(get: Get, reference: IdentityReference): Promise<void> {
  const deciding = VISITORS.toSorted(byBytes).flatMap((visitor) => reference.decidingFact(visitor) ?? []);
  for (const user of USERS) {
    const { results } = await get(`/identities?userId=${encodeURIComponent(user)}`);
    expect(results).toEqual(
      deciding
        .filter(({ userId }) => reference.whomBecame(userId) === reference.whomBecame(user))
        .map(({ anonymousId, userId, version, said }) => ({
          ...{ anonymousId, userId, linkedAt: timeOf(version), by: said === 1 ? 'request' : 'event' },
        })),
    );
  }
  const { results } = await get('/identities/conflicts');
  expect(results).toEqual(
    reference.conflicts.map(([anonymousId, userId, otherUserId, version]) => ({
      ...{ anonymousId, userId, otherUserId, linkedAt: timeOf(version) },
    })),
  );
}

function timeOf(version: number): string {
  return new Date(Math.floor(version / 1_000)).toISOString();
}

function byBytes(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}

/** Filters by users, and which persons match them: who is named may have become somebody else. */
const FILTERS: readonly (readonly [
  filter: string,
  holds: (user: string, became: (user: string) => string) => boolean,
])[] = [
  ['event[ne]=nothing', () => true],
  ['userId=ada', (user, became) => user === became('ada')],
  [`userId=${encodeURIComponent("o'\\h")}`, (user, became) => user === became("o'\\h")],
  ['userId[ne]=ada', (user, became) => user !== became('ada')],
  ['userId[in]=ada,bob', (user, became) => user === became('ada') || user === became('bob')],
  ['userId[in]=,bob', (user, became) => user === '' || user === became('bob')],
  ['userId[exists]=true', (user) => user !== ''],
  ['userId[exists]=false', (user) => user === ''],
  ['userId[eq]=', (user) => user === ''],
  ['userId[prefix]=b', (user) => user.startsWith('b')],
  ['userId[gt]=bob', (user) => user > 'bob'],
];

/** How many steps a person completed, with the events in the order of a funnel. */
function stepsOf(events: readonly TestEvent[], steps: readonly string[]): number {
  const inOrder = events.toSorted(
    (one, other) =>
      one.timestampMs - other.timestampMs || one.receivedAtUs - other.receivedAtUs || (one.uuid < other.uuid ? -1 : 1),
  );
  let done = 0;
  for (const { event } of inOrder) if (event === steps[done]) done += 1;
  return done;
}
