import { readFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { type QueryService, startQuery, type TestEvent } from '../testing/query.ts';
import { expectedRecord, inOrder } from '../testing/reference.ts';
import { type EventOrder, ORDER_FIELDS } from './event-order.ts';

let query: QueryService;

/** How long an answer about deletions may be used again, and some. */
const FORGOTTEN_MS = 350;

/** A counterexample is told as it is: to make it smaller would take minutes of ClickHouse. */
const RUN = { endOnFailure: true };

/** The whole file takes half a minute where nothing else runs. */
const TIMEOUT_MS = 180_000;

const START_MS = Date.UTC(2026, 1, 27);
const WORKSPACES = ['a', 'b'] as const;

const [eraseEvents, markErased] = await Promise.all(
  ['erase-events', 'mark-erased'].map((name) =>
    readFile(new URL(`../../../writer/src/sql/${name}.sql`, import.meta.url), 'utf8'),
  ),
);

beforeAll(async () => {
  // Many questions at once are not what is tested here.
  query = await startQuery(inject('clickhouseUrl'), {
    QUERY_TIMEOUT_MS: '60000',
    COUNT_TIMEOUT_MS: '60000',
    QUERY_PENDING_MAX: '10000',
  });
});
afterAll(() => query.stop());

/** All events that were accepted up to then are deleted. */
interface Deletion {
  readonly workspace: string;
  readonly userId: string;
  readonly versionUs: number;
}

const USERS = ['ada', 'bob', 'cem'];

/** Few values, so that many events are equal in most of them; over a month's end. */
const anyEvent: fc.Arbitrary<TestEvent> = fc.record({
  uuid: fc.uuid(),
  timestampMs: fc.nat(3).map((day) => START_MS + day * 86_400_000),
  receivedAtUs: fc.nat(9).map((step) => (START_MS + 5 * 86_400_000) * 1_000 + step * 500),
  event: fc.constantFrom('opened', 'Closed', 'öffnet'),
  type: fc.constantFrom('track', 'page'),
  userId: fc.constantFrom('', ...USERS),
  groupId: fc.constantFrom('', 'acme', 'ada'),
  anonymousId: fc.constantFrom('', 'x'),
  instanceId: fc.constantFrom('', 'i', 'j'),
  properties: fc.constantFrom('{}', '{"plan":"pro"}', '{"plan":"free"}'),
  context: fc.constant('{}'),
  traits: fc.constant('{}'),
});

function someEvents(minLength: number, maxLength: number): fc.Arbitrary<TestEvent[]> {
  return fc.uniqueArray(anyEvent, { minLength, maxLength, selector: ({ uuid }) => uuid });
}

async function empty(): Promise<void> {
  for (const table of ['events', 'user_deletions']) {
    await query.clickHouse.command({ query: `TRUNCATE TABLE ${table}` });
  }
  await wait(FORGOTTEN_MS);
}

async function askForDeletion(deletions: readonly Deletion[]): Promise<void> {
  await query.insert(
    'user_deletions',
    deletions.map(({ workspace, userId, versionUs }) => ({
      ...{ workspace_id: workspace, user_id: userId },
      ...{ version: versionUs, stored_at: 1, erased_version: 0 },
    })),
  );
}

/** What the writer does about deletions that are due, by its own statement. */
async function carryOut(statement: string | undefined, deletions: readonly Deletion[]): Promise<void> {
  await query.clickHouse.command({
    query: statement as string,
    query_params: {
      workspaces: deletions.map(({ workspace }) => workspace),
      users: deletions.map(({ userId }) => userId),
      versions: deletions.map(({ versionUs }) => versionUs),
    },
    clickhouse_settings: { lightweight_deletes_sync: '2' },
  });
}

/** What of a workspace's events is left by deletions. */
function left(events: readonly TestEvent[], workspace: string, deletions: readonly Deletion[]): TestEvent[] {
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

const FILTERED = ['event', 'uuid', 'type', 'userId', 'groupId', 'anonymousId', 'instanceId', 'properties'] as const;

/** Every filter that an event passes: by each of its values, and by its time. */
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

/** Each filter alone, and each with each other; the second one is by another event, so that some find nothing. */
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
  const { status, body } = await query.get(url, workspace);
  const events = expected.filter((event) => filters.every(({ holds }) => holds(event)));
  // Another event's time may end before this one's begins.
  if (status === 400) expect([url, events]).toEqual([expect.stringContaining('startDate'), []]);
  else expect({ url, ...body }).toMatchObject({ url, total: events.length, results: recordsOf(events, order) });
}

function recordsOf(events: readonly TestEvent[], order: EventOrder): Record<string, unknown>[] {
  return inOrder(events, order).map(expectedRecord);
}

test(
  'every filter, alone and with every other, finds and counts exactly what is there, before, during and after erasures',
  async () => {
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
          const questions = [...aloneAndInPairs(first as Filter[], second as Filter[])];
          let phase = 0;
          /** A quarter of the questions at a time, so that in five phases each is asked, and always the one for everything. */
          const expectExactNow = async (now: readonly Deletion[]) => {
            phase += 1;
            const asked = questions.filter(({ length }, index) => length === 0 || index % 4 === phase % 4);
            for (const workspace of WORKSPACES) {
              const expected = left(events[workspace], workspace, now);
              // Of the other workspace it is enough that nothing is mixed up.
              const here = workspace === 'a' ? asked : asked.filter((filters) => filters.length < 2);
              await Promise.all(here.map((filters) => expectExact(workspace, expected, order, filters)));
            }
          };
          await expectExactNow([]);
          await askForDeletion(deletions);
          await wait(FORGOTTEN_MS);
          await expectExactNow(deletions);
          // Some are erased and not marked yet, others are still to be erased.
          const early = deletions.slice(0, Math.ceil(deletions.length / 2));
          await carryOut(eraseEvents, early);
          await expectExactNow(deletions);
          await carryOut(markErased, early);
          await carryOut(eraseEvents, deletions);
          await expectExactNow(deletions);
          await carryOut(markErased, deletions);
          await expectExactNow(deletions);
        },
      ),
      { numRuns: 3, ...RUN },
    );
  },
  TIMEOUT_MS,
);

/** In a few inserts, each of which is a part of its own, or more over a month's end. */
async function storeInParts(workspace: string, events: readonly TestEvent[]): Promise<void> {
  const size = Math.ceil(events.length / 3);
  for (let from = 0; from < events.length; from += size) {
    await query.store(workspace, events.slice(from, from + size));
  }
}

/** All records of a list, page by page; counted where nobody looks at the pages on the way. */
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

/** Of these users everything is deleted that was accepted before, and what came after stays. */
const LEAVING = ['gone', 'leaving', 'returned'];
const DELETED_UP_TO_US = (START_MS + 5 * 86_400_000) * 1_000 + 2_250;

test(
  'a walk in any order sees all that stays once and nothing twice, while events come and others are erased',
  async () => {
    const leavingEvents = someEvents(4, 9).map((events) =>
      events.map((event, index) => ({ ...event, userId: LEAVING[index % LEAVING.length] as string })),
    );
    await fc.assert(
      fc.asyncProperty(
        someEvents(10, 25),
        leavingEvents,
        someEvents(30, 45),
        // Few pages of one or two records, which would be hundreds.
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

          /** Two of three come right beside where a walk is, all but equal to the last record of a page; one is of a deleted user. */
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
              await askForDeletion([deletion]);
              await carryOut(eraseEvents, [deletion]);
              await carryOut(markErased, [deletion]);
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

          const stays = left(atFirst, 'a', deletions).map(({ uuid }) => uuid);
          for (const { records, ...walked } of walks) {
            const seen = records.map(({ uuid }) => String(uuid));
            expect(new Set(seen).size, 'nothing is seen twice').toBe(seen.length);
            expect(new Set(seen).isSupersetOf(new Set(stays)), 'all that stays is seen').toBe(true);
            const events = seen.map((uuid) => known.get(uuid) as TestEvent);
            expect(records).toEqual(recordsOf(events, walked.order));
          }

          await wait(FORGOTTEN_MS);
          const still = left(stored, 'a', deletions);
          const records = recordsOf(still, order);
          expect(await walk(order, limits)).toEqual({ records, total: records.length });
        },
      ),
      { numRuns: 2, ...RUN },
    );
  },
  TIMEOUT_MS,
);
