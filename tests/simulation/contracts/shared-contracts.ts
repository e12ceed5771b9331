import { randomUUID } from 'node:crypto';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { EventRow } from '@sluice/shared/rows';
import { CarriedTables } from '@sluice/storage/clickhouse/carried-tables';
import { formSender } from '@sluice/storage/clickhouse/form-request';
import { SharedReplicas } from '@sluice/storage/clickhouse/shared-replicas';
import { STATEMENTS as STORAGE_STATEMENTS } from '@sluice/storage/clickhouse/statements';
import { STATEMENTS } from '@sluice/writer/batch/statements';
import { expect } from 'vitest';
import { event, eventsIn, linesOf, REFUSED, recordEpoch, refusalOf } from './contract-rows.ts';

const STATEMENT_TIMEOUT_MS = 20_000;
const TIMES = 6;

/** Two replicas that share their rows behind one address, on which a contract is tried: what stands in for ClickHouse Cloud, or those of the simulator. */
export interface SharedEngine extends AsyncDisposable {
  /** Of the address, which leads each statement to another replica. */
  readonly client: ClickHouseClient;
  /** One of the replicas dies. */
  stopOne(): Promise<void>;
  sleep(ms: number): Promise<void>;
  run<Result>(work: () => Promise<Result>): Promise<Result>;
}

type Contract = (engine: SharedEngine) => Promise<void>;

/** What we believe about replicas that share their rows. The last one stops one of them. */
export const SHARED_CONTRACTS: Readonly<Record<string, Contract>> = {
  async 'nothing is stored at a replica before it is recorded'(engine) {
    expect(await refusalOf(store(engine, attemptOf(randomUUID(), 1)))).toBe(REFUSED);
  },
  async 'replicas are recorded once each by whoever ends statements, and store from then on'(engine) {
    for (let time = 0; time < 2; time += 1) await replicasOf(engine).end({ prefix: `${randomUUID()}/` });
    expect(await recorded(engine)).toHaveLength(2);
    for (let time = 0; time < TIMES; time += 1) await store(engine, attemptOf(randomUUID(), 1));
  },
  async 'what was committed by one statement is found by the next, wherever that runs'(engine) {
    const stored: EventRow[] = [];
    for (let time = 0; time < TIMES; time += 1) {
      const row = event();
      await store(engine, attemptOf(randomUUID(), 1), row);
      stored.push(row);
      expect(await repeatsOf(engine, stored)).toBe(stored.length);
    }
  },
  async 'an epoch, and the end of an attempt, are known to all statements that begin later'(engine) {
    const group = randomUUID();
    await recordEpoch(engine.client, { group, generation: 2 });
    const ended = attemptOf(group, 2);
    const ending = { query: STATEMENTS['record-ended-batch'].sql, query_params: { attempt: ended.attempt } };
    await engine.client.command(ending);
    for (const attempt of [attemptOf(group, 1), ended]) {
      for (let time = 0; time < TIMES; time += 1) {
        expect(await refusalOf(store(engine, attempt))).toBe(REFUSED);
      }
    }
    await store(engine, attemptOf(group, 2));
  },
  async 'who asks all replicas, or ends statements of all, gets an error where one does not answer'(engine) {
    await engine.stopOne();
    const ofAll = { prefix: `${randomUUID()}/`, except: '', ageMs: 0 };
    const asking = async () => {
      const { sql: query } = STORAGE_STATEMENTS['find-statements-everywhere'];
      return await (await engine.client.query({ query, query_params: ofAll, format: 'JSONEachRow' })).json();
    };
    const { sql: query } = STORAGE_STATEMENTS['end-statements-everywhere'];
    const settings = { distributed_ddl_task_timeout: '5' };
    const ending = () => engine.client.command({ query, query_params: ofAll, clickhouse_settings: settings });
    for (let time = 0; time < 2; time += 1) {
      expect(await refusalOf(asking())).not.toBe('nothing');
      expect(await refusalOf(ending())).not.toBe('nothing');
    }
  },
};

function attemptOf(group: string, generation: number) {
  return { group, incarnation: 1, generation, attempt: randomUUID() };
}

function replicasOf({ client }: SharedEngine): SharedReplicas {
  return new SharedReplicas({ client, groupPrefix: `${randomUUID()}/`, statementTimeoutMs: STATEMENT_TIMEOUT_MS });
}

async function recorded({ client }: SharedEngine): Promise<readonly object[]> {
  const result = await client.query({ query: STORAGE_STATEMENTS['read-replicas'].sql, format: 'JSONEachRow' });
  return await result.json<object>();
}

async function staged(
  { client }: SharedEngine,
  attempt: ReturnType<typeof attemptOf>,
  rows: readonly EventRow[],
): Promise<CarriedTables> {
  const tables = new CarriedTables(formSender(client), randomUUID(), STATEMENT_TIMEOUT_MS, {}, attempt);
  await tables.run(STATEMENTS['stage-events']);
  await tables.load(STATEMENTS['load-events'], linesOf(rows));
  return tables;
}

async function store(engine: SharedEngine, attempt: ReturnType<typeof attemptOf>, row = event()): Promise<void> {
  await (await staged(engine, attempt, [row])).run(STATEMENTS['store-events']);
}

/** Returns how many of these events are left when those that are stored are dropped, subtracted from all. */
async function repeatsOf(engine: SharedEngine, rows: readonly EventRow[]): Promise<number> {
  const tables = await staged(engine, attemptOf(randomUUID(), 1), rows);
  await tables.run(STATEMENTS['find-repeats']);
  await tables.run(STATEMENTS['drop-stored-repeats']);
  return rows.length - (await eventsIn(tables));
}
