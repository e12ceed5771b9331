import type { RowBatch } from '@sluice/writer/batches/row-batch';
import type { Epoch } from '@sluice/writer/ownership/epoch';
import { batchOf, changeRow, createTestStore, eventRow, NOON, type TestStore } from '@sluice/writer/testing/store';
import { expect, inject, test, vi } from 'vitest';
import { ownClickHouse } from '../support/engines.ts';
import { freeze } from '../support/freeze.ts';
import { until } from '../support/service.ts';
import { type Moment, startStatementProxy } from '../support/statement-proxy.ts';
import { killAtCall } from '../support/strace.ts';

vi.setConfig({ testTimeout: 300_000 });

const DAY_MS = 86_400_000;

/** Rows of every kind over three months: each has a part of its own, which is renamed into place by itself. */
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

/** The same rows in other batches than before: two, which overlap. */
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
    `SELECT kind, id FROM entities FINAL WHERE workspace_id = '${workspace}' ORDER BY kind, id`,
  );
  expect(entities).toEqual([
    { kind: 'organization', id: 'g' },
    { kind: 'user', id: 'u' },
  ]);
  const of = (table: string, column: string) =>
    db.read(`SELECT DISTINCT ${column} FROM ${table} WHERE workspace_id = '${workspace}'`);
  expect(await of('entity_properties', 'id, property, register.value AS value')).toEqual([
    { id: 'u', property: 'plan', value: '"pro"' },
  ]);
  expect(await of('user_deletions', 'user_id')).toEqual([{ user_id: 'gone' }]);
  expect(await of('user_sightings', 'user_id')).toEqual([{ user_id: 'u' }]);
}

test('the writer is cut off at each step, for good, and another stores the same rows in other batches', async () => {
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
    return await writer.ownership.begin(generation, 'member');
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

/** Where ClickHouse is killed: at which of the calls that a statement makes, and how many months are there then. */
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

test('ClickHouse is killed at each step of an insert, the second month of it included', async () => {
  await using clickhouse = await ownClickHouse();
  let trap: Promise<AsyncDisposable> | undefined;
  let place: (typeof CALLS)[number] | undefined;
  await using proxy = await startStatementProxy(clickhouse.url, async (name, moment) => {
    if (place && name === place[0] && moment === 'before') {
      trap = killAtCall(clickhouse.pid as number, place[1], place[2]);
      place = undefined;
      await trap;
    }
    return 'go on';
  });
  const db = await createTestStore(clickhouse.url);
  const writer = db.writer({ url: proxy.url });
  const epoch = await writer.ownership.begin(1, 'member');
  for (const call of CALLS) {
    const [statement, calls, nth, months] = call;
    const workspace = `${statement} ${calls[0]} ${nth}`;
    const rows = rowsOf(workspace, 60);
    const batch = writer.open(batchOf(rows.events, rows.changes), epoch);
    place = call;
    await expect(batch.store(), workspace).rejects.toThrow();
    await (await trap)?.[Symbol.asyncDispose]();
    expect(await clickhouse.exited()).toMatchObject({ signal: 'SIGKILL' });
    await clickhouse.restart();
    expect((await countsOf(db, workspace)).months, workspace).toBe(months);
    await until('the batch to be stored', 30_000, () => batch.store().catch(() => 0));
    await expectAllStored(db, workspace, 60);
  }
  await db.close();
});

test('an insert that is still running after the timeout is ended before the batch is stored again', async () => {
  await using clickhouse = await ownClickHouse();
  const db = await createTestStore(clickhouse.url);
  const pid = clickhouse.pid as number;
  let frozen = false;
  let thaw: (() => void) | undefined;
  const happened: string[] = [];
  async function freezeOnceItRuns(): Promise<void> {
    await until('the insert to run', 10_000, async () => {
      const query = "SELECT count() AS running FROM system.processes WHERE query_id LIKE '%/store-events/%'";
      return (await db.read<{ running: number }>(query))[0]?.running;
    });
    thaw = freeze(pid);
  }

  await using proxy = await startStatementProxy(clickhouse.url, async (name, moment) => {
    if (name === 'store-events' && moment === 'after') happened.push('an insert has ended');
    if (name === 'store-events' && moment === 'before' && !frozen) {
      frozen = true;
      void freezeOnceItRuns();
    }
    return 'go on';
  });
  const rows = rowsOf('timeout', 40_000);
  const writer = db.writer({ url: proxy.url, requestTimeoutMs: 2_500 });
  const batch = writer.open(batchOf(rows.events, rows.changes), await writer.ownership.begin(1, 'member'));
  await expect(batch.store()).rejects.toThrow(/[Tt]imeout/);
  happened.push('the writer has given up');
  thaw?.();
  await until('the batch to be stored', 60_000, () => batch.store().catch(() => 0));
  await expectAllStored(db, 'timeout', 40_000);
  expect(happened).toEqual(['the writer has given up', 'an insert has ended', 'an insert has ended']);
  await db.close();
});
