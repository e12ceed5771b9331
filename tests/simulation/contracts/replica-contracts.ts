import { randomUUID } from 'node:crypto';
import type { ClickHouseSettings } from '@clickhouse/client';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { EventRow } from '@sluice/shared/rows';
import { ClickHouseSession } from '@sluice/storage/clickhouse/clickhouse-session';
import { REPLICA_STATEMENTS } from '@sluice/storage/clickhouse/replicas';
import { STATEMENTS as STORAGE_STATEMENTS } from '@sluice/storage/clickhouse/statements';
import { type BlockRange, blocksOf, rangesOf, without } from '@sluice/storage/protocol/block-ranges';
import { STATEMENTS } from '@sluice/writer/batch/statements';
import { STATEMENTS as ERASURE_STATEMENTS } from '@sluice/writer/erasure/statements';
import { expect } from 'vitest';
import { endStatements, event, linesOf, MARCH_MS, POLL_MS, REFUSED, recordEpoch, refusalOf } from './contract-rows.ts';

/** How long an insert waits for its quorum, and a replica for parts, in the contracts, in milliseconds. */
const WAIT_MS = 3_000;

/** How long a statement may take, in milliseconds. */
const STATEMENT_TIMEOUT_MS = 6_000;

const QUORUM: ClickHouseSettings = {
  insert_quorum: '2',
  insert_quorum_parallel: 1,
  insert_quorum_timeout: WAIT_MS,
};

/** Two replicas that a contract is tried on: real ones, or those of the simulator. */
export interface ReplicasEngine extends AsyncDisposable {
  /** Creates a client. @param settings besides the pinned ones */
  connect(replica: 0 | 1, settings?: ClickHouseSettings): ClickHouseClient;
  /** Returns how many events of a workspace a replica has. */
  eventsAt(replica: 0 | 1, workspace: string): Promise<number>;
  /** Has the second replica fetch no parts of events until told otherwise. */
  setFetching(isFetching: boolean): Promise<void>;
  /** Takes Keeper away, or gives it back. It resolves when both replicas know. */
  setKeeper(isThere: boolean): Promise<void>;
  isRunning(replica: 0 | 1, queryIdPrefix: string): Promise<boolean>;
  sleep(ms: number): Promise<void>;
  run<Result>(work: () => Promise<Result>): Promise<Result>;
}

type Contract = (engine: ReplicasEngine) => Promise<void>;

/** What we believe about replicas of ClickHouse. */
export const REPLICA_CONTRACTS: Readonly<Record<string, Contract>> = {
  async 'the rows of an insert with a quorum are at a second replica when it has ended'(engine) {
    const workspace = randomUUID();
    expect(await refusalOf(store(engine.connect(0, QUORUM), [eventOf(workspace)]))).toBe('nothing');
    expect(await engine.eventsAt(1, workspace)).toBe(1);
  },
  async 'a replica that is synced has what was committed at another one before'(engine) {
    const workspace = randomUUID();
    await store(engine.connect(0), [eventOf(workspace)]);
    await sync(engine.connect(1), 'sync-events');
    expect(await engine.eventsAt(1, workspace)).toBe(1);
  },
  async 'an insert that finds no second replica ends as one whose end is not known, and its rows are there'(engine) {
    const workspace = randomUUID();
    await engine.setFetching(false);
    expect(await refusalOf(store(engine.connect(0, QUORUM), [eventOf(workspace)]))).toBe('UNKNOWN_STATUS_OF_INSERT');
    expect([await engine.eventsAt(0, workspace), await engine.eventsAt(1, workspace)]).toEqual([1, 0]);
    await engine.setFetching(true);
    await sync(engine.connect(1), 'sync-events');
    expect(await engine.eventsAt(1, workspace)).toBe(1);
  },
  async 'KILL … SYNC of an insert that waits for its quorum returns when it has ended'(engine) {
    const prefix = randomUUID();
    const { workspace, ended } = await longInsert(engine, prefix);
    await endStatements(engine.connect(0), `${prefix}/store-events/`);
    expect(await engine.isRunning(0, `${prefix}/store-events/`)).toBe(false);
    expect(await ended).not.toBe('nothing');
    expect(await engine.eventsAt(0, workspace)).toBe(1);
    await engine.setFetching(true);
  },
  async 'a replica is not synced while it lacks a part'(engine) {
    const workspace = randomUUID();
    await engine.setFetching(false);
    await store(engine.connect(0), [eventOf(workspace)]);
    expect(await refusalOf(sync(engine.connect(1), 'sync-events', 1))).toBe('TIMEOUT_EXCEEDED');
    await engine.setFetching(true);
    await sync(engine.connect(1), 'sync-events');
    expect(await engine.eventsAt(1, workspace)).toBe(1);
  },
  async 'an epoch is recorded at one replica alone, and refuses nothing at the other one'(engine) {
    const [workspace, group] = [randomUUID(), randomUUID()];
    await recordEpoch(engine.connect(0), { group, generation: 2 });
    const stored = [0, 1].map((replica) =>
      refusalOf(store(engine.connect(replica as 0 | 1), [eventOf(workspace)], undefined, { group, generation: 1 })),
    );
    expect(await Promise.all(stored)).toEqual([REFUSED, 'nothing']);
  },
  async 'equal blocks are stored each time, at whichever replica'(engine) {
    const workspace = randomUUID();
    const row = eventOf(workspace);
    for (const replica of [0, 1, 0] as const) await store(engine.connect(replica, QUORUM), [row]);
    expect(await engine.eventsAt(0, workspace)).toBe(3);
  },
  async 'what one replica removes is removed at the other one, also from parts that it gets later'(engine) {
    const workspace = randomUUID();
    await engine.setFetching(false);
    await store(engine.connect(0), [eventOf(workspace)]);
    const parameters = { workspaces: [workspace], users: ['ada'], versions: [MARCH_MS * 1_000 + 1] };
    const { sql: query } = ERASURE_STATEMENTS['erase-events'];
    const settings = { mutations_sync: '0' } as const;
    await engine.connect(0, settings).command({ query, query_params: { ...parameters, partition: '202603' } });
    await engine.setFetching(true);
    // A replica that is synced may still have to do it.
    for (const replica of [0, 1] as const) await sync(engine.connect(replica), 'sync-events');
    while ((await engine.eventsAt(0, workspace)) + (await engine.eventsAt(1, workspace)) > 0)
      await engine.sleep(POLL_MS);
  },
  async 'the block of an insert has the same number at both replicas, and is left out of a look that knows it'(engine) {
    const before = (await lookAtBlocks(engine, 0)).blocks;
    await store(engine.connect(0, QUORUM), [event()]);
    const [one, other] = [await lookAtBlocks(engine, 0), await lookAtBlocks(engine, 1)];
    const added = rangesOf(without(one.blocks, before));
    expect(added).toEqual([[expect.any(Number), expect.any(Number), added[0]?.[1]]]);
    expect(rangesOf(without(other.blocks, before))).toEqual(added);
    const [partition = 0, first = 0] = added[0] ?? [];
    // A part of before may have been merged with it, or not.
    const known = { ...NOTHING_KNOWN, partitions: [partition], firsts: [0], lasts: [first] };
    expect((await lookAtBlocks(engine, 0, known)).blocks.get(partition)).toBeUndefined();
  },
  async 'the order of blocks is recorded at one replica alone, each record once, and not in an older epoch'(engine) {
    const first = Date.now();
    const [group, second, third] = [randomUUID(), first + 1, first + 2];
    const recordAt = (records: readonly number[], numbers = records) =>
      refusalOf(recordOrder(engine.connect(0), { group, generation: 2, records, numbers }));
    const read = async (replica: 0 | 1, after: number, limit = 9) =>
      (await readRows<{ number: number }>(engine, replica, 'read-records', { after, limit })).map(
        ({ number }) => number,
      );
    const newestOf = async (replica: 0 | 1, after: number) =>
      (await lookAtBlocks(engine, replica, { ...NOTHING_KNOWN, after })).newest;

    expect(await recordAt([first, second])).toBe('nothing');
    expect(await recordAt([second, third])).toBe('nothing');
    expect([await read(0, 0), await read(0, first), await read(0, 0, 1), await read(1, 0)]).toEqual([
      [first, second, third],
      [second, third],
      [first],
      [],
    ]);
    expect([await newestOf(0, second), await newestOf(0, third + 1), await newestOf(1, 0)]).toEqual([third, 0, 0]);
    expect(await recordAt([0], [first])).toBe('nothing');
    expect(await recordAt([0], [second])).toBe('nothing');
    expect(await readRows(engine, 0, 'read-reached')).toEqual([expect.objectContaining({ number: second })]);

    await recordEpoch(engine.connect(0), { group, generation: 3 });
    expect(await recordAt([third + 1])).toBe(REFUSED);
    expect(await newestOf(0, 0)).toBe(third);
  },
  async 'a replica without Keeper says so, knows of no others, and stores nothing until it has another session'(
    engine,
  ) {
    const workspace = randomUUID();
    expect([await isStuck(engine), await countReplicas(engine)]).toEqual([false, 2]);
    await engine.setKeeper(false);
    expect([await isStuck(engine), await countReplicas(engine)]).toEqual([true, 0]);
    const prefix = randomUUID();
    expect(await refusalOf(store(engine.connect(0, QUORUM), [eventOf(workspace)], prefix))).not.toBe('nothing');
    while (await engine.isRunning(0, prefix)) await engine.sleep(POLL_MS);
    expect(await engine.eventsAt(0, workspace)).toBe(0);
    await engine.setKeeper(true);
    expect(await isStuck(engine)).toBe(false);
    expect(await refusalOf(store(engine.connect(0, QUORUM), [eventOf(workspace)]))).toBe('nothing');
    expect(await engine.eventsAt(0, workspace)).toBe(1);
  },
};

async function countReplicas(engine: ReplicasEngine): Promise<number | undefined> {
  return (await readRows<{ replicas: number }>(engine, 0, 'count-replicas'))[0]?.replicas;
}

async function readRows<Row>(
  engine: ReplicasEngine,
  replica: 0 | 1,
  name: keyof typeof STORAGE_STATEMENTS,
  query_params: Record<string, unknown> = {},
): Promise<Row[]> {
  const query = { query: STORAGE_STATEMENTS[name].sql, query_params, format: 'JSONEachRow' } as const;
  return await (await engine.connect(replica).query(query)).json<Row>();
}

const NOTHING_KNOWN = { partitions: [0], firsts: [0], lasts: [0], after: 0, server: '' };

async function lookAtBlocks(engine: ReplicasEngine, replica: 0 | 1, known: Record<string, unknown> = NOTHING_KNOWN) {
  type Look = { readonly parts: BlockRange[]; readonly newest: number };
  const [look] = await readRows<Look>(engine, replica, 'look-at-blocks', known);
  return { blocks: blocksOf(look?.parts ?? []), newest: look?.newest };
}

async function recordOrder(
  client: ClickHouseClient,
  { records, ...given }: { group: string; generation: number; records: readonly number[]; numbers: readonly number[] },
): Promise<void> {
  const ranges = {
    partitions: records.map(() => [202603]),
    firsts: records.map(() => [1]),
    lasts: records.map(() => [2]),
  };
  const of = { incarnation: 1, server: '', throughs: records.map(() => 0), started_at: 0 };
  await client.command({
    query: STORAGE_STATEMENTS['record-order'].sql,
    query_params: { ...given, ...of, ...ranges, records },
  });
}

/** Starts an insert that waits for its quorum, since the second replica fetches nothing from here on. Returns once its rows are there. */
export async function longInsert(engine: ReplicasEngine, prefix: string) {
  const workspace = randomUUID();
  await engine.setFetching(false);
  const ended = refusalOf(store(engine.connect(0, QUORUM), [eventOf(workspace)], prefix));
  while ((await engine.eventsAt(0, workspace)) === 0) await engine.sleep(POLL_MS);
  return { workspace, ended };
}

async function isStuck(engine: ReplicasEngine): Promise<boolean> {
  return (await readRows<{ stuck: number }>(engine, 0, 'look-at-replica'))[0]?.stuck === 1;
}

async function sync(client: ClickHouseClient, name: string, seconds = 30): Promise<void> {
  const statement = REPLICA_STATEMENTS.find((one) => one.name === name);
  if (!statement) throw new Error(`there is no statement ${name}`);
  await client.command({ query: statement.sql, clickhouse_settings: { receive_timeout: seconds } });
}

async function store(
  client: ClickHouseClient,
  rows: readonly EventRow[],
  prefix: string = randomUUID(),
  epoch: { readonly group: string; readonly generation: number } = { group: randomUUID(), generation: 1 },
): Promise<void> {
  const session = new ClickHouseSession(client, prefix, STATEMENT_TIMEOUT_MS);
  await session.run(STATEMENTS['stage-events']);
  await session.load(STATEMENTS['load-events'], linesOf(rows));
  await session.runLast(STATEMENTS['store-events'], { incarnation: 1, ...epoch }, {});
}

function eventOf(workspace: string): EventRow {
  return event({ workspace_id: workspace });
}
