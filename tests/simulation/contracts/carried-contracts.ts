import { randomUUID } from 'node:crypto';
import type { ClickHouseSettings } from '@clickhouse/client';
import type { EventRow } from '@sluice/shared/rows';
import { TooLate } from '@sluice/shared/testing/until';
import { type Attempt, CarriedTables } from '@sluice/storage/clickhouse/carried-tables';
import { formSender } from '@sluice/storage/clickhouse/form-request';
import { STATEMENTS as STORAGE_STATEMENTS } from '@sluice/storage/clickhouse/statements';
import { isRowError } from '@sluice/writer/batch/isolate-bad-rows';
import { STATEMENTS } from '@sluice/writer/batch/statements';
import { expect } from 'vitest';
import type { ClickHouseEngine } from './clickhouse-engines.ts';
import {
  endStatements,
  event,
  eventsIn,
  linesOf,
  MARCH_MS,
  MONTH_BY_MONTH,
  MONTHS,
  POLL_MS,
  REFUSED,
  recordEpoch,
  refusalOf,
} from './contract-rows.ts';

const STATEMENT_TIMEOUT_MS = 60_000;

type Contract = (engine: ClickHouseEngine) => Promise<void>;

/** What we believe about rows that travel with each statement, at a server that is recorded as a replica. */
export const CARRIED_CONTRACTS: Readonly<Record<string, Contract>> = {
  async 'what was loaded with one statement is there for the next ones, and for those of nobody else'(engine) {
    const tables = await staged(engine, [event(), event()]);
    expect(await eventsIn(tables)).toBe(2);
    const other = open(engine);
    expect(await refusalOf(eventsIn(other))).toBe('UNKNOWN_TABLE');
  },
  async 'a row that violates a constraint does not come back, and the others do'(engine) {
    const tables = open(engine);
    await tables.run(STATEMENTS['stage-events']);
    const rows = [event(), event({ workspace_id: '' }), event()];
    expect(await tables.load(STATEMENTS['load-events'], linesOf(rows))).toBe(2);
  },
  async 'one row that is not JSON, or has a field that is no column, has all rows refused'(engine) {
    for (const bad of ['{"workspace_id":\n', `${JSON.stringify({ ...event(), colour: 'red' })}\n`]) {
      const tables = open(engine);
      await tables.run(STATEMENTS['stage-events']);
      const chunks = [...linesOf([event()]), Buffer.from(bad), ...linesOf([event()])];
      const error = await tables.load(STATEMENTS['load-events'], chunks).catch((thrown) => thrown);
      expect(isRowError(error)).toBe(true);
    }
  },
  async 'nothing is stored of an attempt that is recorded as ended, also where there are no rows'(engine) {
    const attempt = attemptOf(1);
    const [full, empty] = [await staged(engine, [event()], attempt), await staged(engine, [], attempt)];
    const query_params = { attempt: attempt.attempt };
    await engine.client.command({ query: STATEMENTS['record-ended-batch'].sql, query_params });
    for (const tables of [full, empty]) expect(await refusalOf(storeEvents(tables))).toBe(REFUSED);
    const seen = full.run(STATEMENTS['store-seen-in-events']);
    expect(await refusalOf(seen)).toBe(REFUSED);
    expect(await engine.rows()).toMatchObject({ events: [], entities: [] });
  },
  async 'nothing is stored once a newer epoch is recorded, also where there are no rows'(engine) {
    const [full, empty] = [await staged(engine, [event()]), await staged(engine, [])];
    await recordEpoch(engine.client, { generation: 2 });
    for (const tables of [full, empty]) {
      expect(await refusalOf(storeEvents(tables))).toBe(REFUSED);
      expect(await refusalOf(tables.run(STATEMENTS['store-seen-in-events']))).toBe(REFUSED);
    }
    expect(await engine.rows()).toMatchObject({ events: [], entities: [] });
  },
  async 'nothing is stored at a replica that is recorded as gone, until it is recorded again'(engine) {
    const tables = await staged(engine, [event()]);
    const replicas = await replicasOf(engine);
    expect(replicas).toHaveLength(1);
    await record(engine, replicas, true);
    expect(await refusalOf(storeEvents(tables))).toBe(REFUSED);
    await record(engine, replicas, false);
    expect(await refusalOf(storeEvents(tables))).toBe('nothing');
    expect((await engine.rows())['events']).toHaveLength(1);
  },
  async 'an insert that began before its attempt ended goes on, until it is killed'(engine) {
    const prefix = randomUUID();
    const attempt = attemptOf(1);
    const { running } = await longInsert(engine, prefix, attempt);
    const query_params = { attempt: attempt.attempt };
    await engine.client.command({ query: STATEMENTS['record-ended-batch'].sql, query_params });
    const before = (await engine.rows())['events']?.length ?? 0;
    await moreEvents(engine, before, running);
    await endStatements(engine.client, `${prefix}/`);
    expect(await engine.isRunning(`${prefix}/`)).toBe(false);
    const after = (await engine.rows())['events']?.length ?? 0;
    expect(await running).toBe('QUERY_WAS_CANCELLED');
    await engine.sleep(300);
    expect((await engine.rows())['events']).toHaveLength(after);
    expect(after).toBeLessThan(MONTHS);
  },
  async 'an insert knows the deletions that were stored before it, whichever rows travel with it'(engine) {
    const tables = await staged(engine, [event({ user_id: 'ada' }), event({ user_id: 'bob' })]);
    const deleting = open(engine);
    await deleting.run(STATEMENTS['stage-changes']);
    const deletion = { workspace_id: 'w', kind: 'user', id: 'ada', operation: 'delete', change_id: randomUUID() };
    await deleting.load(STATEMENTS['load-changes'], linesOf([{ ...deletion, version: MARCH_MS * 1_000 + 1 }]));
    await deleting.run(STATEMENTS['store-deletions']);
    await storeEvents(tables);
    expect((await engine.rows())['events']).toEqual([expect.stringContaining('bob')]);
  },
};

function attemptOf(generation: number): Attempt {
  return { group: 'group', incarnation: 1, generation, attempt: randomUUID() };
}

function open({ client }: ClickHouseEngine, attempt = attemptOf(1), prefix: string = randomUUID()): CarriedTables {
  return new CarriedTables(formSender(client), prefix, STATEMENT_TIMEOUT_MS, {}, attempt);
}

async function staged(
  engine: ClickHouseEngine,
  rows: readonly EventRow[],
  attempt?: Attempt,
  prefix?: string,
): Promise<CarriedTables> {
  const tables = open(engine, attempt, prefix);
  await tables.run(STATEMENTS['stage-events']);
  if (rows.length > 0) await tables.load(STATEMENTS['load-events'], linesOf(rows));
  return tables;
}

async function storeEvents(tables: CarriedTables, settings: ClickHouseSettings = {}): Promise<void> {
  await tables.run(STATEMENTS['store-events'], {}, settings);
}

/** Starts an insert of events of many months, which takes some seconds, and returns how it ends once some of them are stored. */
async function longInsert(engine: ClickHouseEngine, prefix: string, attempt: Attempt) {
  const rows = Array.from({ length: MONTHS }, (_, month) => event({ timestamp: Date.UTC(2026, 2 + month, 1) }));
  const tables = await staged(engine, rows, attempt, prefix);
  await engine.delayInserts();
  const running = refusalOf(storeEvents(tables, MONTH_BY_MONTH));
  await moreEvents(engine, 0, running);
  return { running };
}

/** Waits until an insert has stored more events. @throws {TooLate} when it has ended before that was seen */
async function moreEvents(engine: ClickHouseEngine, before: number, running: Promise<string>): Promise<void> {
  let outcome: string | undefined;
  void running.then((ended) => {
    outcome = ended;
  });
  for (;;) {
    const lastOutcome = outcome;
    if (((await engine.rows())['events']?.length ?? 0) > before) return;
    if (lastOutcome !== undefined) throw new TooLate(`the insert ended with ${lastOutcome}, and was to go on`);
    await engine.sleep(POLL_MS);
  }
}

async function replicasOf({ client }: ClickHouseEngine): Promise<readonly string[]> {
  const result = await client.query({ query: STORAGE_STATEMENTS['read-replicas'].sql, format: 'JSONEachRow' });
  return (await result.json<{ readonly replica: string }>()).map(({ replica }) => replica);
}

async function record({ client }: ClickHouseEngine, replicas: readonly string[], isGone: boolean): Promise<void> {
  const { sql: query } = STORAGE_STATEMENTS['record-replicas'];
  await client.command({ query, query_params: { replicas: [...replicas], isGone } });
}
