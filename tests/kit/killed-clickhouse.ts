import type { LocalClickHouse } from '@sluice/local-stack/clickhouse';
import { until } from '@sluice/shared/testing/until';
import { batchOf, changeRow, createTestStore, eventRow, NOON, type TestStore } from '@sluice/writer/testing/store';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { ownClickHouse } from './engines.ts';
import { type Moment, startStatementProxy } from './statement-proxy.ts';
import { killAtCall } from './strace.ts';

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

/** In which system call of which statement ClickHouse is killed, and how many months are stored by then. */
export interface Kill {
  readonly statement: string;
  /** Default: those that rename a file. */
  readonly calls?: readonly string[];
  readonly nth: number;
  readonly months: number;
}

/** A ClickHouse that is killed while a batch is stored. */
class KilledClickHouse implements AsyncDisposable {
  readonly #clickhouse: LocalClickHouse;
  readonly #db: TestStore;
  readonly #proxyUrl: string;
  readonly #owned: AsyncDisposableStack;
  #onStatement: (name: string, moment: Moment) => Promise<void> = async () => undefined;
  #generation = 0;

  private constructor(clickhouse: LocalClickHouse, db: TestStore, proxyUrl: string, owned: AsyncDisposableStack) {
    this.#clickhouse = clickhouse;
    this.#db = db;
    this.#proxyUrl = proxyUrl;
    this.#owned = owned;
  }

  static async start(): Promise<KilledClickHouse> {
    await using started = new AsyncDisposableStack();
    const clickhouse = started.use(await ownClickHouse());
    let running: KilledClickHouse | undefined;
    const proxy = await startStatementProxy(clickhouse.url, async (...at) => {
      if (running) await running.#onStatement(...at);
    });
    started.use(proxy);
    const db = started.adopt(await createTestStore(clickhouse.url), (store) => store.close());
    running = new KilledClickHouse(clickhouse, db, proxy.url, started.move());
    return running;
  }

  /** Kills ClickHouse, and expects that the batch is stored once when it runs again. */
  async expectStoredOnce({ statement, calls = RENAMES, nth, months }: Kill): Promise<void> {
    const workspace = `${statement} ${calls[0]} ${nth}`;
    const batch = await this.#open(rowsOf(workspace, 60));
    let trap: Promise<AsyncDisposable> | undefined;
    this.#onStatement = async (name, moment) => {
      // Where a user of the batch was ever deleted, another statement looks for that.
      if (trap || ![statement, `${statement}-since-deletions`].includes(name) || moment !== 'before') return;
      trap = killAtCall(this.#clickhouse.pid as number, calls, nth);
      await trap;
    };
    await expect(batch.store()).rejects.toThrow();
    await (await trap)?.[Symbol.asyncDispose]();
    expect(await this.#clickhouse.exited()).toMatchObject({ signal: 'SIGKILL' });
    await this.#clickhouse.restart();
    expect((await countsOf(this.#db, workspace)).months).toBe(months);
    await until('the batch to be stored', () => batch.store().catch(() => 0));
    await expectAllStored(this.#db, workspace, 60);
  }

  /** It runs, and nothing kills it: a test that fails may leave it down. */
  async repair(): Promise<void> {
    this.#onStatement = async () => undefined;
    if (this.#clickhouse.pid === undefined) await this.#clickhouse.restart();
  }

  /** Opens a batch as a new owner of the partitions. */
  async #open(rows: ReturnType<typeof rowsOf>) {
    this.#generation += 1;
    const writer = this.#db.writer(this.#proxyUrl);
    return writer.open(
      batchOf(rows.events, rows.changes),
      await writer.ownership.begin({ generation: this.#generation, memberId: 'member', leaderId: 'leader' }, ''),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned.disposeAsync();
  }
}

/** Has a test for each of these, all of one ClickHouse. */
export function testKills(kills: readonly Kill[]): void {
  let clickhouse: KilledClickHouse;

  beforeAll(async () => {
    clickhouse = await KilledClickHouse.start();
  });
  afterEach(() => clickhouse?.repair());
  afterAll(() => clickhouse?.[Symbol.asyncDispose]());

  test.each(kills)(
    'killed in $statement, in system call $nth, when $months months are stored: the batch is stored once',
    async (kill) => {
      await clickhouse.expectStoredOnce(kill);
    },
  );
}
