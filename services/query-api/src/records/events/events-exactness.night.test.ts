import { readFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import fc from '@sluice/shared/testing/fast-check';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import {
  DELETIONS_FORGOTTEN_MS,
  eachIdentifier,
  type QueryService,
  startQuery,
  type TestEvent,
} from '../../testing/query-service.ts';
import { expectedPersonRecord, inOrder } from '../../testing/reference.ts';
import { FILTER_FIELDS, ORDER_FIELDS } from './event-columns.ts';
import type { EventOrder } from './event-order.ts';

let query: QueryService;

/** Reports the first counterexample: shrinking it would take minutes. */
const RUN = { endOnFailure: true };

/** The whole file takes half a minute on a machine that does nothing else. */

const START_MS = Date.UTC(2026, 1, 27);
const WORKSPACES = ['a', 'b'] as const;

const ERASURE = await readFile(new URL('../../../../writer/src/erasure/erasure.sql', import.meta.url), 'utf8');
const [eraseEvents = '', forgetErased = ''] = ['erase-events', 'forget-erased'].map((name) =>
  ERASURE.split(/^-- name: /m)
    .find((section) => section.startsWith(`${name}\n`))
    ?.slice(name.length),
);

beforeAll(async () => {
  // The tests send many requests at once; the limits of the queue are tested elsewhere.
  query = await startQuery(inject('clickhouseUrl'), {
    QUERY_PENDING_MAX: '10000',
  });
});
afterAll(() => query.stop());

/** Deletes all events of a user that were accepted up to a version. */
interface Deletion {
  readonly workspace: string;
  readonly userId: string;
  readonly versionUs: number;
}

const USERS = ['ada', 'bob', 'cem'];

/** Few values, so that many events are equal in most of them; over the end of a month. */
const anyEvent: fc.Arbitrary<TestEvent> = fc.record({
  uuid: fc.uuid(),
  timestampMs: fc.nat(3).map((day) => START_MS + day * 86_400_000),
  receivedAtUs: fc.nat(9).map((step) => (START_MS + 5 * 86_400_000) * 1_000 + step * 500),
  event: fc.constantFrom('opened', 'Closed', 'öffnet'),
  type: fc.constantFrom('track', 'page'),
  ...eachIdentifier(fc.constantFrom('', 'i', 'j')),
  userId: fc.constantFrom('', ...USERS),
  groupId: fc.constantFrom('', 'acme', 'ada'),
  properties: fc.constantFrom('{}', '{"plan":"pro"}', '{"plan":"free"}'),
  context: fc.constant('{}'),
  traits: fc.constant('{}'),
});

function someEvents(minLength: number, maxLength: number): fc.Arbitrary<TestEvent[]> {
  return fc.uniqueArray(anyEvent, { minLength, maxLength, selector: ({ uuid }) => uuid });
}

async function empty(): Promise<void> {
  for (const table of ['events', 'pending_deletions']) {
    await query.clickHouse.command({ query: `TRUNCATE TABLE ${table}` });
  }
  await wait(DELETIONS_FORGOTTEN_MS);
}

async function insertDeletions(deletions: readonly Deletion[]): Promise<void> {
  await query.insert(
    'pending_deletions',
    deletions.map(({ workspace, userId, versionUs }) => ({
      ...{ workspace_id: workspace, user_id: userId },
      ...{ version: versionUs, stored_at: 1 },
    })),
  );
}

/** Removes the events of deletions that are due, as the writer does. */
async function eraseEventsOf(deletions: readonly Deletion[]): Promise<void> {
  const result = await query.clickHouse.query({
    query: 'SELECT DISTINCT _partition_id FROM events',
    format: 'JSONCompactEachRow',
  });
  for (const [partition] of await result.json<[string]>()) {
    const query_params = { ...parametersOf(deletions), partition };
    await query.clickHouse.command({ query: eraseEvents, query_params });
  }
}

/** Removes deletions from the pending ones, as the writer does. */
async function forget(deletions: readonly Deletion[]): Promise<void> {
  await query.clickHouse.command({ query: forgetErased, query_params: parametersOf(deletions) });
}

function parametersOf(deletions: readonly Deletion[]) {
  return {
    workspaces: deletions.map(({ workspace }) => workspace),
    users: deletions.map(({ userId }) => userId),
    versions: deletions.map(({ versionUs }) => versionUs),
  };
}

/** The events of a workspace that deletions leave. */
function remaining(events: readonly TestEvent[], workspace: string, deletions: readonly Deletion[]): TestEvent[] {
  const ofWorkspace = deletions.filter((deletion) => deletion.workspace === workspace);
  return events.filter(
    (event) => !ofWorkspace.some(({ userId, versionUs }) => userId === event.userId && event.receivedAtUs <= versionUs),
  );
}

function urlOf({ field, direction }: EventOrder, filters: readonly Filter[] = []): string {
  const order = `/events?orderByField=${field}&orderByDirection=${direction}`;
  return [order, ...filters.map(({ parameter }) => parameter)].join('&');
}

interface Filter {
  /** As in the query of a URL. */
  readonly parameter: string;
  holds(event: TestEvent): boolean;
}

const FILTERED = [...FILTER_FIELDS, 'properties'] as const;

/** Filters that an event matches: one for each of its values, and for its time. */
function filtersOf(example: TestEvent): Filter[] {
  const date = new Date(example.timestampMs).toISOString();
  const byValue = FILTERED.flatMap((name): Filter[] => {
    const holds = (event: TestEvent) => event[name] === example[name];
    const value = name === 'properties' ? JSON.parse(example.properties).plan : example[name];
    const parameter = name === 'properties' ? 'properties.plan' : name;
    return value ? [{ parameter: `${parameter}=${encodeURIComponent(value)}`, holds }] : [];
  });
  return [
    ...byValue,
    { parameter: `startDate=${date}`, holds: ({ timestampMs }) => timestampMs >= example.timestampMs },
    { parameter: `endDate=${date}`, holds: ({ timestampMs }) => timestampMs <= example.timestampMs },
  ];
}

/** Each filter alone, and each with each other. The second one is of another event, so that some find nothing. */
function* aloneAndInPairs(first: readonly Filter[], second: readonly Filter[]): Generator<readonly Filter[]> {
  yield [];
  for (const filter of first) {
    yield [filter];
    for (const other of second) {
      if (nameOf(filter) < nameOf(other)) yield [filter, other];
    }
  }
}

function nameOf({ parameter }: Filter): string {
  return parameter.slice(0, parameter.indexOf('='));
}

const anyOrder: fc.Arbitrary<EventOrder> = fc.record({
  field: fc.constantFrom(...ORDER_FIELDS),
  direction: fc.constantFrom('ASC', 'DESC'),
});

async function expectExact(
  workspace: string,
  expected: readonly TestEvent[],
  order: EventOrder,
  filters: readonly Filter[],
): Promise<void> {
  const url = `${urlOf(order, filters)}&limit=1000`;
  // The page holds all events, so its total is not counted.
  const [{ status, body }, counted] = await Promise.all([
    query.get(url, workspace),
    query.get(`${urlOf(order, filters)}&limit=0`, workspace),
  ]);
  const events = expected.filter((event) => filters.every(({ holds }) => holds(event)));
  // The end may be before the start, since they are of two events.
  if (status === 400) expect([url, events]).toEqual([expect.stringContaining('startDate'), []]);
  else {
    expect({ url, ...body }).toMatchObject({ url, total: events.length, results: recordsOf(events, order) });
    expect([url, counted.body.total]).toEqual([url, events.length]);
  }
}

function recordsOf(events: readonly TestEvent[], order: EventOrder): Record<string, unknown>[] {
  return inOrder(events, order).map(expectedPersonRecord);
}

test('every filter, alone and with every other, finds and counts exactly the events there are, before, during and after erasures', async () => {
  const stored = fc.record({ a: someEvents(5, 40), b: someEvents(1, 10) });
  const someDeletions = fc.uniqueArray(
    fc.record({
      workspace: fc.constantFrom(...WORKSPACES),
      userId: fc.constantFrom(...USERS, 'nobody'),
      versionUs: anyEvent.map(({ receivedAtUs }) => receivedAtUs),
    }),
    { minLength: 1, maxLength: 5, selector: ({ workspace, userId }) => `${workspace} ${userId}` },
  );
  await fc.assert(
    fc.asyncProperty(
      stored,
      someDeletions,
      fc.tuple(fc.nat(), fc.nat()),
      anyOrder,
      async (events, deletions, [one, other], order) => {
        await empty();
        for (const workspace of WORKSPACES) await storeInParts(workspace, events[workspace]);
        const [first, second] = [one, other].map((choice) =>
          filtersOf(events.a[choice % events.a.length] as TestEvent),
        );
        const combinations = [...aloneAndInPairs(first as Filter[], second as Filter[])];
        let phase = 0;
        /** Sends a quarter of the combinations, so that five phases send each, and the empty one always. */
        const expectExactNow = async (now: readonly Deletion[]) => {
          phase += 1;
          const sent = combinations.filter(({ length }, index) => length === 0 || index % 4 === phase % 4);
          for (const workspace of WORKSPACES) {
            const expected = remaining(events[workspace], workspace, now);
            // For the other workspace it is enough that nothing is mixed up.
            const here = workspace === 'a' ? sent : sent.filter((filters) => filters.length < 2);
            await Promise.all(here.map((filters) => expectExact(workspace, expected, order, filters)));
          }
        };
        await expectExactNow([]);
        await insertDeletions(deletions);
        await wait(DELETIONS_FORGOTTEN_MS);
        await expectExactNow(deletions);
        // Some are erased and not yet forgotten, others not yet erased.
        const early = deletions.slice(0, Math.ceil(deletions.length / 2));
        await eraseEventsOf(early);
        await expectExactNow(deletions);
        await forget(early);
        await eraseEventsOf(deletions);
        await expectExactNow(deletions);
        await forget(deletions);
        await expectExactNow(deletions);
      },
    ),
    { numRuns: 3, ...RUN },
  );
});

/** In a few inserts, each of which is a part of its own, or more over the end of a month. */
async function storeInParts(workspace: string, events: readonly TestEvent[]): Promise<void> {
  const size = Math.ceil(events.length / 3);
  for (let from = 0; from < events.length; from += size) {
    await query.store(workspace, events.slice(from, from + size));
  }
}

/** Reads all records of a list, page by page. Counts them unless `onPage` looks at each page. */
async function walk(
  order: EventOrder,
  limits: readonly number[],
  onPage?: (last: Record<string, unknown>) => void,
): Promise<{ readonly records: Record<string, unknown>[]; readonly total: number | null }> {
  const records: Record<string, unknown>[] = [];
  const counted = onPage ? '&total=none' : '';
  let cursor = '';
  for (let page = 0; page < 1_000; page += 1) {
    const { status, body } = await query.get(
      `${urlOf(order)}&limit=${limits[page % limits.length]}${counted}${cursor}`,
    );
    expect(status).toBe(200);
    records.push(...body.results);
    if (body.nextCursor === null) return { records, total: body.total };
    cursor = `&cursor=${body.nextCursor}`;
    onPage?.(records.at(-1) as Record<string, unknown>);
  }
  throw new Error('the pages do not end');
}

const ORDERS = ORDER_FIELDS.flatMap((field) =>
  (['ASC', 'DESC'] as const).map((direction): EventOrder => ({ field, direction })),
);

/** Deleted users: their events up to a version are deleted, later ones stay. */
const LEAVING = ['gone', 'leaving', 'returned'];
const DELETED_UP_TO_US = (START_MS + 5 * 86_400_000) * 1_000 + 2_250;

test('pages by cursor in any order hold every event that stays once, and none twice, while events arrive and others are erased', async () => {
  const leavingEvents = someEvents(4, 9).map((events) =>
    events.map((event, index) => ({ ...event, userId: LEAVING[index % LEAVING.length] as string })),
  );
  await fc.assert(
    fc.asyncProperty(
      someEvents(10, 25),
      leavingEvents,
      someEvents(30, 45),
      // Pages of one or two records would be hundreds, so few are so small.
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 3, maxLength: 4 }),
      anyOrder,
      async (staying, leaving, coming, limits, order) => {
        await empty();
        const atFirst = [...staying, ...leaving];
        await storeInParts('a', atFirst);
        await query.store('b', coming);
        const deletions = LEAVING.map((userId) => ({ workspace: 'a', userId, versionUs: DELETED_UP_TO_US }));
        const known = new Map([...atFirst, ...coming].map((event) => [event.uuid, event]));
        const places: TestEvent[] = [];
        const stored: TestEvent[] = [...atFirst];
        let walking = true;

        /** Of each three events two lie right beside a place where a walk is, and one is of a deleted user. */
        async function keepStoring(): Promise<void> {
          for (let from = 0; walking && from < coming.length; from += 3) {
            const place = places.pop();
            const batch = coming.slice(from, from + 3).map((event, index): TestEvent => {
              const { uuid, userId, receivedAtUs } = event;
              if (index === 2) return { ...event, userId: 'returned', receivedAtUs: DELETED_UP_TO_US + 1 };
              return place ? { ...place, uuid, userId, receivedAtUs } : event;
            });
            for (const event of batch) known.set(event.uuid, event);
            stored.push(...batch);
            await query.store('a', batch);
          }
        }

        async function erase(): Promise<void> {
          for (const deletion of deletions) {
            await insertDeletions([deletion]);
            await eraseEventsOf([deletion]);
            // The writer forgets them in its next round.
            await wait(DELETIONS_FORGOTTEN_MS);
            await forget([deletion]);
          }
        }

        const onPage = ({ uuid }: Record<string, unknown>) => {
          const place = known.get(String(uuid));
          if (place) places.push(place);
        };
        const changes = Promise.all([keepStoring(), erase()]);
        const walks = await Promise.all(
          ORDERS.map(async (order) => ({ order, ...(await walk(order, limits, onPage)) })),
        ).finally(() => {
          walking = false;
        });
        await changes;

        const stays = remaining(atFirst, 'a', deletions).map(({ uuid }) => uuid);
        for (const { records, ...walked } of walks) {
          const seen = records.map(({ uuid }) => String(uuid));
          expect(new Set(seen).size, 'no event twice').toBe(seen.length);
          expect(new Set(seen).isSupersetOf(new Set(stays)), 'every event that stays').toBe(true);
          const events = seen.map((uuid) => known.get(uuid) as TestEvent);
          expect(records).toEqual(recordsOf(events, walked.order));
        }

        await wait(DELETIONS_FORGOTTEN_MS);
        const still = remaining(stored, 'a', deletions);
        const records = recordsOf(still, order);
        expect(await walk(order, limits)).toEqual({ records, total: records.length });
      },
    ),
    { numRuns: 2, ...RUN },
  );
});
