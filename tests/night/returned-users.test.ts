import { setTimeout as wait } from 'node:timers/promises';
import { DELETIONS_FORGOTTEN_MS, type QueryService, startQuery } from '@sluice/query-api/testing/query-service';
import { mergeParts } from '@sluice/shared/clickhouse/testing/merge-parts';
import { takeDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import fc from '@sluice/shared/testing/fast-check';
import { ClickHouseSession } from '@sluice/storage/clickhouse/clickhouse-session';
import { eraseRows, forgetUsersWithoutRows } from '@sluice/writer/erasure/deleted-rows';
import type { DueErasure } from '@sluice/writer/erasure/erasure-passes';
import { STATEMENTS } from '@sluice/writer/erasure/statements';
import { batchOf, changeRow, createTestStore, eventRow, type TestStore } from '@sluice/writer/testing/store';
import { expect, inject, test } from 'vitest';

const START_MS = Date.UTC(2026, 2, 1);
const HOUR_MS = 3_600_000;
const WORKSPACE = 'a';

/** What happens to a user: an event with a time of its own, a submission without events, or a deletion. */
const step = fc.record({
  kind: fc.constantFrom('event', 'sighting', 'deletion'),
  user: fc.constantFrom('ada', 'bob', "'\\"),
  hours: fc.integer({ min: -9, max: 40 }),
  /** How many steps before itself a deletion goes up to. */
  back: fc.constantFrom(0, 0, 3),
});
type Step = typeof step extends fc.Arbitrary<infer One> ? One : never;

/** What is sent, in order; `at` is its place among all. */
type Sent = Step & { readonly at: number };

/** The time of receipt, in microseconds. */
const versionOf = ({ at, kind, back }: Sent) =>
  (START_MS + (at - (kind === 'deletion' ? back : 0)) * HOUR_MS) * 1_000 + 7;

/** A database with a writer and a query service. */
interface Server {
  readonly db: TestStore;
  readonly query: QueryService;
}

async function startServer(started: AsyncDisposableStack): Promise<Server> {
  const url = inject('clickhouseUrl');
  const database = await takeDatabase(url);
  started.defer(() => database.release());
  const shared = async () => ({ config: database.config, release: async () => undefined });
  const db = await createTestStore(url, shared);
  started.defer(() => db.close());
  const query = await startQuery(url, {}, undefined, shared);
  started.defer(() => query.stop());
  return { db, query };
}

async function store({ db }: Server, sent: readonly Sent[]): Promise<void> {
  const rows = sent.map((one) => {
    const version = versionOf(one);
    const ids = { workspace_id: WORKSPACE, id: one.user, version };
    const timestamp = START_MS + one.hours * HOUR_MS;
    if (one.kind === 'event')
      return { event: eventRow({ workspace_id: WORKSPACE, user_id: one.user, timestamp, received_at: version }) };
    return { change: changeRow({ ...ids, operation: one.kind === 'sighting' ? 'seen' : 'delete' }) };
  });
  await db.store(
    batchOf(
      rows.flatMap(({ event }) => event ?? []),
      rows.flatMap(({ change }) => change ?? []),
    ),
  );
}

async function erase({ db }: Server): Promise<void> {
  await db.settle();
  const session = new ClickHouseSession(db.writerClient, 'erasure', 60_000);
  const first = { delayMs: 0, usersMax: 100, afterMs: 0, afterWorkspace: '', afterUser: '' };
  const due = () => session.read<DueErasure>(STATEMENTS['find-due-erasures'], first);
  await eraseRows(session, await due(), () => undefined);
  await forgetUsersWithoutRows(session, await due());
  expect(await due()).toEqual([]);
  await session.close();
}

const FIELDS = ['firstSeenAt', 'lastSeenAt'] as const;

interface Seen {
  readonly foreignId: string;
  readonly firstSeenAt: string;
  readonly lastSeenAt: string;
}

/** The list in the plainest way: of each user what was sent after the last deletion. */
function fold(sent: readonly Sent[], field: (typeof FIELDS)[number], direction: string): Seen[] {
  const deletedUpTo = (user: string) =>
    Math.max(0, ...sent.filter((one) => one.kind === 'deletion' && one.user === user).map(versionOf));
  const live = sent.filter((one) => one.kind !== 'deletion' && versionOf(one) > deletedUpTo(one.user));
  const seenMs = (one: Sent) =>
    one.kind === 'event' ? START_MS + one.hours * HOUR_MS : Math.floor(versionOf(one) / 1_000);
  const sign = direction === 'ASC' ? 1 : -1;
  return [...Map.groupBy(live, ({ user }) => user)]
    .map(([foreignId, own]) => ({
      foreignId,
      firstSeenAt: new Date(Math.min(...own.map(seenMs))).toISOString(),
      lastSeenAt: new Date(Math.max(...own.map(seenMs))).toISOString(),
    }))
    .sort((a, b) => sign * (a[field] < b[field] || (a[field] === b[field] && a.foreignId < b.foreignId) ? -1 : 1));
}

async function expectLists({ query }: Server, sent: readonly Sent[], when: string): Promise<void> {
  for (const field of FIELDS) {
    for (const direction of ['ASC', 'DESC']) {
      const found: unknown[] = [];
      for (let cursor = ''; ; ) {
        const order = `orderByField=${field}&orderByDirection=${direction}`;
        const { status, body, text } = await query.get(`/users?limit=2&${order}${cursor}`, WORKSPACE);
        expect(status, text).toBe(200);
        found.push(...body.results.map(({ properties: _, ...seen }) => seen));
        if (body.nextCursor === null) break;
        cursor = `&cursor=${body.nextCursor}`;
      }
      expect(found, `${when}, by ${field} ${direction}`).toEqual(fold(sent, field, direction));
    }
  }
}

test('two servers list users who came back at the same places, whatever came, was merged and was erased when', async () => {
  await using started = new AsyncDisposableStack();
  const merging = await startServer(started);
  const other = await startServer(started);
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 12, maxLength: 36, size: 'max' }),
      fc.integer({ min: 1, max: 5 }),
      fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }),
      async (steps, cut, erasedBetween) => {
        for (const { db } of [merging, other])
          for (const table of ['events', 'entities', 'user_sightings', 'user_deletions', 'pending_deletions'])
            await db.client.command({ query: `TRUNCATE TABLE ${table}` });
        const sent = steps.map((one, at) => ({ ...one, at }));
        const third = Math.ceil(sent.length / 3);
        for (const [part, isErased] of erasedBetween.entries()) {
          const next = sent.slice(part * third, (part + 1) * third);
          const known = sent.slice(0, (part + 1) * third);
          if (next.length === 0) break;
          for (let from = 0; from < next.length; from += cut) {
            await store(merging, next.slice(from, from + cut));
            await mergeParts(merging.db.client, 'entities');
          }
          // Submissions without events take another way, and overtake deletions.
          await store(
            other,
            next.filter(({ kind }) => kind === 'sighting'),
          );
          await store(
            other,
            next.filter(({ kind }) => kind !== 'sighting'),
          );
          await wait(DELETIONS_FORGOTTEN_MS);
          for (const server of [merging, other]) await expectLists(server, known, `part ${part}`);
          if (isErased) await erase(merging);
          await expectLists(merging, known, `part ${part}, erased: ${isErased}`);
        }
        for (const server of [merging, other]) await erase(server);
        for (const server of [merging, other]) await expectLists(server, sent, 'in the end');
        await mergeParts(other.db.client, 'entities');
        await expectLists(other, sent, 'in the end, merged');
      },
    ),
    // To shrink it would take longer than the test may.
    { numRuns: 3, endOnFailure: true },
  );
});
