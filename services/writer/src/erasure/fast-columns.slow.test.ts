import { randomUUID } from 'node:crypto';
import { createLogger } from '@sluice/shared/base/log';
import { createDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { until } from '@sluice/shared/testing/until';
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { batchOf, createTestStore, eventRow, type TestStore } from '../testing/store.ts';
import { FastColumns } from './fast-columns.ts';

let db: TestStore;

beforeAll(async () => {
  db = await createTestStore(inject('clickhouseUrl'), createDatabase);
});
afterAll(() => db.close());

const [JANUARY, FEBRUARY] = [Date.UTC(2026, 0, 31, 23), Date.UTC(2026, 1, 1)];
const PROPERTIES: readonly Record<string, unknown>[] = [
  ...[
    'pro',
    1,
    -0,
    1.5,
    null,
    true,
    [1],
    { a: 1 },
    '',
    '?',
    '\ud800',
    'x'.repeat(300),
    1e21,
    '1234567890123456789',
  ].map((plan) => ({ plan, n: 1 })),
  ...[{}, { "it's": 'quoted', n: 2 }, { n: '\0', '\\': 3 }, { odd: 2 ** 70, plan: 'pro' }],
];

/** Stores the same events in workspaces, in each month. */
async function store(workspaces: readonly string[], months = [FEBRUARY]): Promise<void> {
  for (const month of months) {
    const rows = PROPERTIES.flatMap((properties, index) =>
      workspaces.map((workspace_id) => eventRow({ workspace_id, timestamp: month + index, properties })),
    );
    await db.store(batchOf(rows));
  }
}

async function declare(workspace_id: string, names: readonly string[]): Promise<void> {
  const table = 'console_fast_properties';
  await db.client.insert({ table, values: [{ workspace_id, names }], format: 'JSONEachRow' });
}

/** All columns of the events of a workspace, in the order of their times. */
async function columns(workspace: string): Promise<unknown[]> {
  return await db.read(
    `SELECT timestamp, COLUMNS('^fast_') FROM events WHERE workspace_id = '${workspace}' ORDER BY timestamp`,
  );
}

const mutations = async () =>
  (await db.read('SELECT 1 FROM system.mutations WHERE database = currentDatabase()')).length;

function aFiller(): FastColumns {
  const filler = new FastColumns(
    { ERASURE_INTERVAL_MS: 50, RETENTION_INTERVAL_MS: 1_000 },
    {
      ...{ client: db.writerClient, writerId: randomUUID(), logger: createLogger('test', 'silent') },
      ...{ failures: { inc: () => undefined } },
    },
  );
  onTestFinished(() => filler.stop());
  filler.setOwner(true);
  return filler;
}

test('events from before get the columns that they would have if it had been declared before, and lose those that were withdrawn', async () => {
  const filler = aFiller();
  const months = [JANUARY, FEBRUARY];
  await store(['filled', 'never'], months);
  const lists = [['plan', '', 'n', "it's"], ['n', 'plan', '\\'], []];
  for (const [index, names] of lists.entries()) {
    const twin = `twin ${index}`;
    for (const workspace of ['filled', twin]) await declare(workspace, names);
    await store([twin], months);
    await filler.takeRound();
    expect(await columns('filled')).toEqual(await columns(twin));
  }
  // More workspaces than one statement fills columns of; the first and the last of them have events.
  const many = Array.from({ length: 110 }, (_, index) => `many ${1_000 + index}`);
  const [first = '', last = ''] = [many[0], many.at(-1)];
  await store([first, last]);
  await db.client.insert({
    table: 'console_fast_properties',
    values: many.map((workspace_id) => ({ workspace_id, names: ['', 'plan'] })),
    format: 'JSONEachRow',
  });
  await filler.takeRound();
  await declare('twin of many', ['', 'plan']);
  await store(['twin of many']);
  for (const workspace of [first, last]) expect(await columns(workspace)).toEqual(await columns('twin of many'));
  expect(await columns('never')).toEqual(await columns('twin 2'));
});

test('only partitions are rewritten that have such events', async () => {
  const filler = aFiller();
  await declare('again', ['plan']);
  await filler.takeRound();
  // A writer that does not know of the declaration stores an event.
  const event = {
    workspace_id: 'again',
    timestamp: '2026-01-01',
    uuid: randomUUID(),
    event: 'e',
    properties: '{"plan":5}',
  };
  await db.client.insert({ table: 'events', values: [event], format: 'JSONEachRow' });
  const before = await mutations();
  await filler.takeRound();
  expect(await db.read("SELECT fast_1 FROM events WHERE workspace_id = 'again'")).toEqual([{ fast_1: '5' }]);
  await filler.takeRound();
  expect(await mutations()).toBe(before + 1);
});

test('a writer that owns the partition no more fills nothing, and a filling that fails is ended by what comes after it', async () => {
  const filler = aFiller();
  await store(['lost']);
  await declare('lost', ['plan']);
  filler.setOwner(false);
  await expect(filler.takeRound()).rejects.toThrow('no longer fills');
  await db.client.command({
    query: `ALTER TABLE events UPDATE fast_set = throwIf(workspace_id = 'lost', 'no space')
      WHERE transform(toString(workspace_id), ['lost'], [1], 0) = 1`,
    clickhouse_settings: { mutations_sync: '0' },
  });
  filler.setOwner(true);
  await until('the columns to be filled', () =>
    filler.takeRound().then(
      () => true,
      () => false,
    ),
  );
  await declare('twin of lost', ['plan']);
  await store(['twin of lost']);
  expect(await columns('lost')).toEqual(await columns('twin of lost'));
});
