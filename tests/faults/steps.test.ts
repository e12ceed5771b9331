import type { Epoch } from '@sluice/writer/epoch';
import type { RowBatch } from '@sluice/writer/row-batch';
import { batchOf, changeRow, createTestStore, eventRow, NOON, type TestStore } from '@sluice/writer/testing/store';
import { expect, inject, test, vi } from 'vitest';
import { ownClickHouse } from '../support/engines.ts';
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
  expect(await db.read(`SELECT property FROM entity_properties WHERE workspace_id = '${workspace}'`)).not.toEqual([]);
}

test('the writer is killed at each step, and another stores the same rows in other batches', async () => {
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

test('ClickHouse is killed at each step of an insert, the second month of it included', async () => {
  await using clickhouse = await ownClickHouse();
  const db = await createTestStore(clickhouse.url);
  const writer = db.writer();
  const epoch = await writer.ownership.begin(1, 'member');
  const months = new Set<number>();
  let kills = 0;

  /** Whether ClickHouse made one of these calls often enough to be killed by it. */
  async function killedWhileStoring(workspace: string, calls: readonly string[], nth: number): Promise<boolean> {
    const rows = rowsOf(workspace, 60);
    const batch = writer.open(batchOf(rows.events, rows.changes), epoch);
    await using trap = await killAtCall(clickhouse.pid as number, calls, nth);
    const stored = await batch.store().then(
      () => true,
      () => false,
    );
    await trap[Symbol.asyncDispose]();
    if (stored) return false;
    await clickhouse.exited();
    await clickhouse.restart();
    months.add((await countsOf(db, workspace)).months);
    await until('the batch to be stored', 30_000, () => batch.store().catch(() => 0));
    await expectAllStored(db, workspace, 60);
    return true;
  }

  for (const calls of [
    ['mkdir', 'mkdirat'],
    ['rename', 'renameat', 'renameat2'],
  ]) {
    for (let nth = 1; await killedWhileStoring(`${calls[0]} ${nth}`, calls, nth); nth += 1) kills += 1;
  }
  await db.close();
  expect(kills).toBeGreaterThan(4);
  expect(
    [...months].some((count) => count === 1 || count === 2),
    'killed when some months of the insert were there, and others not',
  ).toBe(true);
});

test('an insert that is still running after the timeout is ended before the batch is stored again', async () => {
  await using clickhouse = await ownClickHouse();
  const db = await createTestStore(clickhouse.url);
  const pid = clickhouse.pid as number;
  let frozen = false;
  const happened: string[] = [];
  await using proxy = await startStatementProxy(clickhouse.url, async (name, moment) => {
    if (name === 'store-events' && moment === 'after') happened.push('an insert has ended');
    if (name === 'store-events' && moment === 'before' && !frozen) {
      frozen = true;
      // By then the insert has begun.
      setTimeout(() => process.kill(pid, 'SIGSTOP'), 60);
    }
    return 'go on';
  });
  const rows = rowsOf('timeout', 40_000);
  const writer = db.writer({ url: proxy.url, requestTimeoutMs: 2_500 });
  const batch = writer.open(batchOf(rows.events, rows.changes), await writer.ownership.begin(1, 'member'));
  await expect(batch.store()).rejects.toThrow(/[Tt]imeout/);
  happened.push('the writer has given up');
  process.kill(pid, 'SIGCONT');
  await until('the batch to be stored', 60_000, () => batch.store().catch(() => 0));
  await expectAllStored(db, 'timeout', 40_000);
  expect(happened).toEqual(['the writer has given up', 'an insert has ended', 'an insert has ended']);
  await db.close();
});
