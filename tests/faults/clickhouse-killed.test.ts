import type { LocalClickHouse } from '@sluice/local-stack/clickhouse';
import { until } from '@sluice/shared/testing/until';
import { batchOf, changeRow, createTestStore, eventRow, NOON, type TestStore } from '@sluice/writer/testing/store';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { ownClickHouse } from '../kit/engines.ts';
import { type Moment, startStatementProxy } from '../kit/statement-proxy.ts';
import { killAtCall } from '../kit/strace.ts';

const DAY_MS = 86_400_000;

/** Rows of every kind over three months. Each month is a part of its own, which ClickHouse renames into place. */
function rowsOf(workspace: string, count: number) {
  const common = { workspace_id: workspace, user_id: 'u', group_id: 'g' };
  return {
    events: Array.from({ length: count }, (_, index) =>
      eventRow({
        ...common,
        timestamp: NOON + index - 31 * DAY_MS * (index % 3),
        ...(index % 2 === 0 && { stamped: 1 as const }),
      }),
    ),
    changes: [
      changeRow({ workspace_id: workspace, id: 'u', operation: 'seen' }),
      changeRow({ workspace_id: workspace, id: 'u', operation: 'set', property: 'plan', value: '"pro"' }),
      changeRow({ workspace_id: workspace, id: 'gone', operation: 'delete' }),
    ],
  };
}

interface Counts {
  readonly rows: number;
  readonly unique: number;
  readonly months: number;
}

async function countsOf(db: TestStore, workspace: string): Promise<Counts> {
  const [counts] = await db.read<Counts>(`
    SELECT count() AS rows, uniqExact(timestamp, uuid) AS unique, uniqExact(toYYYYMM(timestamp)) AS months
    FROM events WHERE workspace_id = '${workspace}'`);
  return counts as Counts;
}

async function expectAllStored(db: TestStore, workspace: string, count: number): Promise<void> {
  expect(await countsOf(db, workspace)).toEqual({ rows: count, unique: count, months: 3 });
  const entities = await db.read(
    `SELECT kind, id, other_id FROM entities FINAL WHERE workspace_id = '${workspace}' ORDER BY kind`,
  );
  expect(entities).toEqual([
    { kind: 'member', id: 'g', other_id: 'u' },
    { kind: 'membership', id: 'u', other_id: 'g' },
    { kind: 'organization', id: 'g', other_id: '' },
    { kind: 'user', id: 'u', other_id: '' },
  ]);
  const of = (table: string, column: string) =>
    db.read(`SELECT DISTINCT ${column} FROM ${table} WHERE workspace_id = '${workspace}'`);
  expect(await of('entity_properties', 'id, property, register.value AS value')).toEqual([
    { id: 'u', property: 'plan', value: '"pro"' },
  ]);
  expect(await of('user_deletions', 'user_id')).toEqual([{ user_id: 'gone' }]);
  expect(await of('user_sightings', 'user_id')).toEqual([{ user_id: 'u' }]);
}

const RENAMES = ['rename', 'renameat', 'renameat2'];

/** Where ClickHouse is killed: in which system call of which statement, and how many months are stored by then. */
const CALLS: readonly (readonly [statement: string, calls: readonly string[], nth: number, months: number])[] = [
  ['store-deletions', RENAMES, 1, 0],
  ['store-properties', RENAMES, 1, 0],
  ['store-seen-in-changes', RENAMES, 1, 0],
  ['store-seen-in-events', RENAMES, 1, 0],
  ['store-events', ['mkdir', 'mkdirat'], 1, 0],
  ['store-events', RENAMES, 1, 0],
  ['store-events', RENAMES, 2, 1],
  ['store-events', RENAMES, 3, 2],
];

const started = new AsyncDisposableStack();
let clickhouse: LocalClickHouse;
let db: TestStore;
let onStatement: (name: string, moment: Moment) => Promise<void> = async () => undefined;
let proxyUrl: string;
let generation = 0;

beforeAll(async () => {
  clickhouse = started.use(await ownClickHouse());
  const proxy = await startStatementProxy(clickhouse.url, (name, moment) => onStatement(name, moment));
  proxyUrl = started.use(proxy).url;
  db = await createTestStore(clickhouse.url);
  started.defer(() => db.close());
});
afterEach(async () => {
  onStatement = async () => undefined;
  // A test that fails may leave it down.
  if (clickhouse.pid === undefined) await clickhouse.restart();
});
afterAll(() => started.disposeAsync());

/** Opens a batch as a new owner of the partitions. */
async function open(rows: ReturnType<typeof rowsOf>) {
  generation += 1;
  const writer = db.writer(proxyUrl);
  return writer.open(
    batchOf(rows.events, rows.changes),
    await writer.ownership.begin({ generation: generation, memberId: 'member', leaderId: 'leader' }),
  );
}

test.each(CALLS)(
  'killed in %s, in the system call %j number %i, when %i months are stored: the batch is stored once',
  async (statement, calls, nth, months) => {
    const workspace = `${statement} ${calls[0]} ${nth}`;
    const batch = await open(rowsOf(workspace, 60));
    let trap: Promise<AsyncDisposable> | undefined;
    onStatement = async (name, moment) => {
      // Where a user of the batch was ever deleted, another statement looks for that.
      if (trap || ![statement, `${statement}-since-deletions`].includes(name) || moment !== 'before') return;
      trap = killAtCall(clickhouse.pid as number, calls, nth);
      await trap;
    };
    await expect(batch.store()).rejects.toThrow();
    await (await trap)?.[Symbol.asyncDispose]();
    expect(await clickhouse.exited()).toMatchObject({ signal: 'SIGKILL' });
    await clickhouse.restart();
    expect((await countsOf(db, workspace)).months).toBe(months);
    await until('the batch to be stored', () => batch.store().catch(() => 0));
    await expectAllStored(db, workspace, 60);
  },
);
