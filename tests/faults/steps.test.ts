import type { LocalClickHouse } from '@sluice/local-stack/clickhouse';
import { until } from '@sluice/shared/testing/until';
import type { Epoch } from '@sluice/writer/protocol/epoch';
import type { RowBatch } from '@sluice/writer/protocol/row-batch';
import { batchOf, changeRow, createTestStore, eventRow, NOON, type TestStore } from '@sluice/writer/testing/store';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { ownClickHouse } from '../support/engines.ts';
import { freeze } from '../support/freeze.ts';
import { type Moment, startStatementProxy } from '../support/statement-proxy.ts';
import { killAtCall } from '../support/strace.ts';

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

/** The same rows in two batches that overlap. */
function inOtherBatches({ events, changes }: ReturnType<typeof rowsOf>): RowBatch[] {
  const middle = Math.floor(events.length / 2);
  return [batchOf(events.slice(0, middle + 5), changes), batchOf(events.slice(middle), changes)];
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

test('the writer is cut off at each step, and another one stores the same rows in other batches', async () => {
  const url = inject('clickhouseUrl');
  const db = await createTestStore(url);
  const names = new Set<string>();
  let fatal: ((name: string, moment: Moment) => boolean) | undefined;
  await using proxy = await startStatementProxy(url, async (name, moment) => {
    names.add(name);
    return fatal?.(name, moment) ? 'lose' : 'go on';
  });
  let generation = 0;

  async function ownerOf(writer: ReturnType<TestStore['writer']>): Promise<Epoch> {
    generation += 1;
    return await writer.ownership.begin({ generation: generation, memberId: 'member', leaderId: 'leader' });
  }

  async function killedAt(workspace: string, where: typeof fatal): Promise<void> {
    const rows = rowsOf(workspace, 30);
    const killed = db.writer({ url: proxy.url });
    const epoch = await ownerOf(killed);
    fatal = where;
    const storing = killed.store(batchOf(rows.events, rows.changes), epoch);
    if (where) await expect(storing).rejects.toThrow();
    else await storing;
    fatal = undefined;
    const next = db.writer();
    const nextEpoch = await ownerOf(next);
    for (const batch of inOtherBatches(rows)) await next.store(batch, nextEpoch);
    await expectAllStored(db, workspace, 30);
  }

  await killedAt('nowhere', undefined);
  const steps = [...names];
  expect(steps.length).toBeGreaterThan(12);
  for (const step of steps) {
    for (const moment of ['before', 'after'] as const) {
      await killedAt(`${moment} ${step}`, (name, at) => name === step && at === moment);
    }
  }
  await db.close();
});

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

describe('with a ClickHouse that may be killed', () => {
  const started = new AsyncDisposableStack();
  let clickhouse: LocalClickHouse;
  let db: TestStore;
  let onStatement: (name: string, moment: Moment) => Promise<void> = async () => undefined;
  let proxyUrl: string;
  let generation = 0;

  beforeAll(async () => {
    clickhouse = started.use(await ownClickHouse());
    const proxy = await startStatementProxy(clickhouse.url, async (name, moment) => {
      await onStatement(name, moment);
      return 'go on';
    });
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
  async function open(rows: ReturnType<typeof rowsOf>, options: { readonly requestTimeoutMs?: number } = {}) {
    generation += 1;
    const writer = db.writer({ url: proxyUrl, ...options });
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
        if (trap || name !== statement || moment !== 'before') return;
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

  test('an insert that is still running after the timeout is ended before the batch is stored again', async () => {
    let thaw: (() => void) | undefined;
    const happened: string[] = [];
    async function freezeOnceItRuns(): Promise<void> {
      const pid = clickhouse.pid as number;
      await until('the insert to run', async () => {
        const query = "SELECT count() AS running FROM system.processes WHERE query_id LIKE '%/store-events/%'";
        return (await db.read<{ running: number }>(query))[0]?.running;
      });
      thaw = freeze(pid);
    }

    let begun = false;
    onStatement = async (name, moment) => {
      if (name !== 'store-events') return;
      if (moment === 'after') happened.push('an insert has ended');
      else if (!begun) {
        begun = true;
        void freezeOnceItRuns();
      }
    };
    const batch = await open(rowsOf('timeout', 40_000), { requestTimeoutMs: 2_500 });
    await expect(batch.store()).rejects.toThrow(/[Tt]imeout/);
    happened.push('the writer has given up');
    thaw?.();
    await until('the batch to be stored', () => batch.store().catch(() => 0));
    await expectAllStored(db, 'timeout', 40_000);
    expect(happened).toEqual(['the writer has given up', 'an insert has ended', 'an insert has ended']);
  });
});
