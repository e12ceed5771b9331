import { randomUUID } from 'node:crypto';
import type { ClickHouseSettings } from '@clickhouse/client';
import { createLogger } from '@sluice/shared/base/log';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { kafkaEnv } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import type { ChangeRow, EventRow } from '@sluice/shared/rows';
import { ClickHouseSession } from '@sluice/storage/clickhouse/clickhouse-session';
import { Halts } from '@sluice/storage/clickhouse/halts';
import { STATEMENTS as STORAGE_STATEMENTS } from '@sluice/storage/clickhouse/statements';
import { DeadLetters } from '@sluice/storage/dead-letters';
import { deadLetterId } from '@sluice/storage/protocol/dead-letter';
import { Fenced } from '@sluice/storage/protocol/epoch';
import { isRowError } from '@sluice/writer/batch/isolate-bad-rows';
import { NUMBERED_ROWS } from '@sluice/writer/batch/staging-tables';
import { STATEMENTS } from '@sluice/writer/batch/statements';
import { expect } from 'vitest';
import { z } from 'zod';
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
const ROWS_A_MONTH = 3;

type Contract = (engine: ClickHouseEngine) => Promise<void>;

/** What we believe about sessions. */
const SESSIONS: Readonly<Record<string, Contract>> = {
  async 'the staged tables of a session are not seen by another one'(engine) {
    const [one, other] = [open(engine.client), open(engine.client)];
    await one.run(STATEMENTS['stage-events']);
    expect(await refusalOf(other.load(STATEMENTS['load-events'], linesOf([event()])))).toBe('UNKNOWN_TABLE');
    expect(await one.load(STATEMENTS['load-events'], linesOf([event()]))).toBe(1);
  },
  async 'a table is not staged twice in a session'(engine) {
    const session = open(engine.client);
    await session.run(STATEMENTS['stage-events']);
    expect(await refusalOf(session.run(STATEMENTS['stage-events']))).toBe('TABLE_ALREADY_EXISTS');
  },
  async 'the staged tables are gone when the session is closed, and it may be closed twice'(engine) {
    const session = open(engine.client);
    await session.run(STATEMENTS['stage-events']);
    await session.close();
    await session.close();
    expect(await refusalOf(session.load(STATEMENTS['load-events'], linesOf([event()])))).toBe('SESSION_NOT_FOUND');
  },
  async 'a statement that fails leaves the staged tables as they were'(engine) {
    const session = await staged(engine, [event()]);
    expect(await refusalOf(session.load(STATEMENTS['load-events'], linesOf([event({ event: '' })])))).toBe(
      'VIOLATED_CONSTRAINT',
    );
    expect(await eventsIn(session)).toBe(1);
  },
  async 'the last statement of a session closes it'(engine) {
    const session = await staged(engine, [event()]);
    await session.runLast(STATEMENTS['store-events'], epoch(1), {});
    expect(await refusalOf(session.load(STATEMENTS['load-events'], linesOf([event()])))).toBe('SESSION_NOT_FOUND');
  },
  async 'the last statement of a session closes it, also when it fails'(engine) {
    const session = await staged(engine, [event()]);
    await recordEpoch(engine.client, { generation: 2 });
    expect(await refusalOf(session.runLast(STATEMENTS['store-events'], epoch(1), {}))).toBe(REFUSED);
    expect(await refusalOf(session.run(STATEMENTS['store-events'], epoch(2)))).toBe('SESSION_NOT_FOUND');
  },
  async 'a session is locked while one of its statements runs'(engine) {
    const { session, running } = await longInsert(engine);
    expect(await refusalOf(eventsIn(session))).toBe('SESSION_IS_LOCKED');
    expect(await refusalOf(session.close())).toBe('SESSION_IS_LOCKED');
    expect(await running).toBe('nothing');
  },
};

/** What we believe about rows. */
const ROWS: Readonly<Record<string, Contract>> = {
  async 'one row that violates a constraint has all rows of its insert refused'(engine) {
    const session = await staged(engine, []);
    const rows = [event(), event({ workspace_id: '' }), event()];
    const error = await session.load(STATEMENTS['load-events'], linesOf(rows)).catch((thrown) => thrown);
    expect(isRowError(error)).toBe(true);
    expect(await eventsIn(session)).toBe(0);
  },
  async 'one row that is not JSON has all rows of its insert refused'(engine) {
    const session = await staged(engine, []);
    const chunks = [...linesOf([event()]), Buffer.from('{"workspace_id":\n'), ...linesOf([event()])];
    const error = await session.load(STATEMENTS['load-events'], chunks).catch((thrown) => thrown);
    expect(isRowError(error)).toBe(true);
    expect(await eventsIn(session)).toBe(0);
  },
  async 'one row with a field that is no column has all rows of its insert refused'(engine) {
    const session = await staged(engine, []);
    const rows = [event(), { ...event(), colour: 'red' }];
    const error = await session.load(STATEMENTS['load-events'], linesOf(rows)).catch((thrown) => thrown);
    expect(isRowError(error)).toBe(true);
    expect(await eventsIn(session)).toBe(0);
  },
  async 'brackets around all rows, a semicolon behind them, and several rows on a line are taken, and counted'(engine) {
    const row = () => JSON.stringify(event());
    const load = async (...lines: readonly string[]) => {
      const session = await staged(engine, []);
      const chunks = lines.map((line) => Buffer.from(`${line}\n`));
      return await session.load(STATEMENTS['load-events'], chunks).catch(isRowError);
    };
    expect(await load(`[${row()}]`)).toBe(1);
    expect(await load(`[${row()}`, `${row()}]`)).toBe(2);
    expect(await load(`${row()};`)).toBe(1);
    expect(await load(row(), `${row()};`)).toBe(2);
    expect(await load(`${row()}${row()}`)).toBe(2);
    const refused = true;
    expect(await load(`[${row()}]`, row())).toBe(refused);
    expect(await load(row(), `[${row()}]`)).toBe(refused);
    expect(await load(`${row()};`, row())).toBe(refused);
    expect(await load(`[${row()}`)).toBe(refused);
    expect(await load('[1]')).toBe(refused);
  },
  async 'an insert tells how many rows it was sent'(engine) {
    const session = await staged(engine, []);
    expect(await session.load(STATEMENTS['load-events'], linesOf([event(), event(), event()]))).toBe(3);
  },
  async 'numbered rows are loaded whatever they violate, and each says what'(engine) {
    const session = open(engine.client);
    const { create, loadSkipping, readLoaded } = NUMBERED_ROWS.changes;
    const bad = [{}, { id: '' }, { kind: 'robot' }, { operation: 'sell' }];
    const rows = bad.map((fields, line) => ({ line, ...change('seen'), ...fields }));
    await session.run(create);
    await session.load(loadSkipping, linesOf(rows));
    const read = await session.read<{ line: number; violated: string }>(readLoaded);
    const violated = read.toSorted((one, other) => one.line - other.line).map((row) => row.violated);
    expect(violated).toEqual(['', 'complete', 'known_kind', 'known_operation']);
  },
  async 'of the changes of a property the one with the highest version counts, whichever was stored last'(engine) {
    for (const version of [2, 3, 1]) {
      await storeChanges(engine, [change('set', { version, property: 'plan', value: `"${version}"` })]);
    }
    expect((await engine.rows())['properties']).toEqual([expect.stringContaining('"3\\"')]);
  },
};

/** What we believe about dead letters. */
const DEAD_LETTERS: Readonly<Record<string, Contract>> = {
  async 'a dead letter is read byte for byte, and counts as replayed once it is marked'(engine) {
    const deadLetters = deadLettersOf(engine);
    const { id, row } = await storeDeadLetter(engine);
    const found = await deadLetters.read(id);
    expect(found?.row).toEqual(row);
    expect(await engine.rows()).toMatchObject({ deadLetters: [expect.stringMatching(/,0\]$/)] });
    if (found) await deadLetters.markReplayed(found);
    expect(await engine.rows()).toMatchObject({ deadLetters: [expect.stringMatching(/,1\]$/)] });
  },
  async 'a dead letter that was recorded again after it was read does not count as replayed'(engine) {
    const deadLetters = deadLettersOf(engine);
    const { id } = await storeDeadLetter(engine);
    const found = await deadLetters.read(id);
    await storeDeadLetter(engine);
    if (found) await deadLetters.markReplayed(found);
    expect(await engine.rows()).toMatchObject({ deadLetters: [expect.stringMatching(/,0\]$/)] });
  },
  async 'of a dead letter that is not there nothing is read, and nothing is marked'(engine) {
    const deadLetters = deadLettersOf(engine);
    expect(await deadLetters.read('nothing')).toBeUndefined();
    const { id } = await storeDeadLetter(engine);
    const found = await deadLetters.read(id);
    if (found) await deadLetters.markReplayed({ ...found, deadLetter: { ...found.deadLetter, id: 'nothing' } });
    expect(await engine.rows()).toMatchObject({ deadLetters: [expect.stringMatching(/,0\]$/)] });
  },
};

/** What we believe about epochs, positions and deletions. */
const FENCES: Readonly<Record<string, Contract>> = {
  async 'an insert of an older epoch is refused, and stores nothing'(engine) {
    await recordEpoch(engine.client, { generation: 2 });
    const session = await staged(engine, [event()]);
    const running = session.run(STATEMENTS['store-events'], epoch(1));
    expect(await refusalOf(running)).toBe(REFUSED);
    expect((await engine.rows())['events']).toEqual([]);
  },
  async 'an insert that began before a newer epoch was recorded goes on'(engine) {
    const { running } = await longInsert(engine);
    await recordEpoch(engine.client, { generation: 2 });
    expect(await running).toBe('nothing');
    expect(await eventsByMonth(engine)).toHaveLength(MONTHS);
  },
  async 'an insert knows the deletions that were stored before it, in whichever session'(engine) {
    const session = await staged(engine, [event({ user_id: 'ada' }), event({ user_id: 'bob' })]);
    await storeChanges(engine, [change('delete', { version: MARCH_MS * 1_000 + 1 })]);
    await session.run(STATEMENTS['store-events'], epoch(1));
    expect((await engine.rows())['events']).toEqual([expect.stringContaining('bob')]);
  },
  async 'an insert does not know the deletions that are stored while it runs'(engine) {
    const { running } = await longInsert(engine);
    await storeChanges(engine, [change('delete', { version: Date.UTC(2050) * 1_000 })]);
    expect(await running).toBe('nothing');
    expect(await eventsByMonth(engine)).toHaveLength(MONTHS);
  },
  async 'positions are stored together or not at all'(engine) {
    await storePositions(engine, 1, [
      ['a', 0, 0, 5],
      ['b', 0, 0, 5],
    ]);
    const storing = storePositions(engine, 1, [
      ['a', 0, 5, 9],
      ['b', 0, 6, 9],
    ]);
    expect(await refusalOf(storing)).toBe(REFUSED);
    expect((await engine.rows())['positions']).toEqual(['["a",0,5,"f",3]', '["b",0,5,"f",3]']);
  },
  async 'a position that arrives late does not replace a later one'(engine) {
    await storePositions(engine, 1, [['a', 0, 0, 9]]);
    await storePositions(engine, 1, [['a', 0, 2, 4]]);
    expect((await engine.rows())['positions']).toEqual(['["a",0,9,"f",3]']);
  },
};

/** What we believe about a statement that names another server than the one that answers. */
const SERVERS: Readonly<Record<string, Contract>> = {
  async 'it records no epoch, position, halt or dead letter, also while there is none'(engine) {
    const server = randomUUID();
    expect(await refusalOf(recordEpoch(engine.client, { generation: 1, server }))).toBe(REFUSED);
    expect(await refusalOf(storePositions(engine, 1, [['a', 0, 0, 5]], server))).toBe(REFUSED);
    expect(await refusalOf(storeDeadLetter(engine, server))).toBe(REFUSED);
    const reason = 'messages are gone' as const;
    const halt = { topic: 'a', partition: 0, reason, detail: '', firstOffset: null, lastOffset: 1n };
    const halting = new Halts(engine.client, 'group').record(halt, { incarnation: 1, generation: 1, server });
    await expect(halting).rejects.toThrow(Fenced);
    expect(await engine.rows()).toMatchObject({ epochs: [], positions: [], deadLetters: [], halts: [] });
  },
  async 'it reads no epoch and no partition, also while there is none'(engine) {
    const query_params = { group: 'group', server: randomUUID() };
    for (const name of ['newest-epoch', 'read-partitions'] as const) {
      expect(await refusalOf(engine.client.query({ query: STORAGE_STATEMENTS[name].sql, query_params }))).toBe(REFUSED);
    }
  },
  async 'it looks at no staged rows'(engine) {
    const server = randomUUID();
    const session = await staged(engine, [event()]);
    await session.run(STATEMENTS['stage-changes']);
    for (const name of ['inspect-events', 'inspect-changes'] as const) {
      expect(await refusalOf(session.read(STATEMENTS[name], { server }))).toBe(REFUSED);
    }
  },
  async 'it ends no statement of another epoch, and says so'(engine) {
    const groupPrefix = `${randomUUID()}/`;
    const { running } = await longInsert(engine, `${groupPrefix}1.2/`);
    const query_params = { server: randomUUID(), groupPrefix, epochPrefix: `${groupPrefix}1.3/` };
    const ending = engine.client.command({ query: STORAGE_STATEMENTS['end-older-statements'].sql, query_params });
    expect(await refusalOf(ending)).toBe(REFUSED);
    expect(await running).toBe('nothing');
  },
  async 'it says so when it closes a session'(engine) {
    const session = await staged(engine, [event()]);
    expect(await refusalOf(session.close(randomUUID()))).toBe(REFUSED);
  },
};

/** What we believe about statements that end before their time, or after their client. */
const ENDINGS: Readonly<Record<string, Contract>> = {
  async 'an insert that is killed has stored each month whole or not at all'(engine) {
    const { prefix, running } = await longInsert(engine);
    await endStatements(engine.client, prefix);
    expect(await running).toBe('QUERY_WAS_CANCELLED');
    const months = await eventsByMonth(engine);
    expect(months.every((rows) => rows === ROWS_A_MONTH)).toBe(true);
    expect(months.length).toBeLessThan(MONTHS);
  },
  async 'nobody ever sees a part of a month of an insert'(engine) {
    const { prefix, running } = await longInsert(engine);
    const seen: number[] = [];
    while (await engine.isRunning(prefix)) {
      seen.push(...(await eventsByMonth(engine)));
      await engine.sleep(POLL_MS);
    }
    expect(await running).toBe('nothing');
    expect(new Set(seen)).toEqual(new Set([ROWS_A_MONTH]));
  },
  async 'KILL … SYNC returns when the statement has ended: nothing of it appears afterwards'(engine) {
    const { prefix, running } = await longInsert(engine);
    await endStatements(engine.client, prefix);
    expect(await engine.isRunning(prefix)).toBe(false);
    const months = await eventsByMonth(engine);
    await running;
    await engine.sleep(300);
    expect(await eventsByMonth(engine)).toEqual(months);
  },
  async 'KILL ends only statements whose query id begins so, and needs none'(engine) {
    const { running } = await longInsert(engine);
    await endStatements(engine.client, 'another/');
    expect(await running).toBe('nothing');
  },
  async 'a statement that begins after a KILL is not killed'(engine) {
    const prefix = randomUUID();
    await endStatements(engine.client, prefix);
    const session = new ClickHouseSession(engine.client, prefix, STATEMENT_TIMEOUT_MS);
    expect(await refusalOf(session.run(STATEMENTS['stage-events']))).toBe('nothing');
  },
  async 'the session of a statement that was killed has its tables'(engine) {
    const { prefix, running, session } = await longInsert(engine);
    await endStatements(engine.client, prefix);
    await running;
    expect(await eventsIn(session)).toBe(MONTHS * ROWS_A_MONTH);
  },
  async 'KILL by epochs ends the statements of older ones, and not those of its own'(engine) {
    const { prefix, running } = await longInsert(engine, 'group/1.2/');
    const { sql: query } = STORAGE_STATEMENTS['end-older-statements'];
    await engine.client.command({
      query,
      query_params: { server: '', groupPrefix: 'group/', epochPrefix: 'group/1.2/' },
    });
    expect(await engine.isRunning(prefix)).toBe(true);
    await engine.client.command({
      query,
      query_params: { server: '', groupPrefix: 'group/', epochPrefix: 'group/1.3/' },
    });
    expect(await running).toBe('QUERY_WAS_CANCELLED');
  },
  async 'a statement that takes too long is ended, and has stored each month whole or not at all'(engine) {
    const { running } = await longInsert(engine, undefined, { max_execution_time: 1 });
    expect(await running).toBe('TIMEOUT_EXCEEDED');
    expect((await eventsByMonth(engine)).every((rows) => rows === ROWS_A_MONTH)).toBe(true);
  },
  async 'a statement runs on after its client has gone'(engine) {
    const { prefix, running } = await longInsert(engine, undefined, {}, engine.connect(700));
    expect(await running).not.toBe('nothing');
    await until(engine, async () => !(await engine.isRunning(prefix)));
    expect(await eventsByMonth(engine)).toHaveLength(MONTHS);
  },
  async 'the rows of an insert are there when it has ended'(engine) {
    const session = await staged(engine, [event()]);
    await session.run(STATEMENTS['store-events'], epoch(1));
    expect((await engine.rows())['events']).toHaveLength(1);
  },
};

export const CLICKHOUSE_CONTRACTS: Readonly<Record<string, Contract>> = {
  ...{ ...SESSIONS, ...ROWS, ...DEAD_LETTERS },
  ...{ ...FENCES, ...SERVERS, ...ENDINGS },
};

/** Their statements on ClickHouse alone are called: nothing is sent to Kafka. */
function deadLettersOf({ client }: ClickHouseEngine): DeadLetters {
  const config = z.object(kafkaEnv).parse({ KAFKA_BROKERS: 'kafka:9092', KAFKA_PARTITIONS: '1' });
  const kafka = createKafka(config, 'test', createLogger('test', 'silent'));
  const limits = { EVENT_BYTES_MAX: 1_000, PROPERTIES_PER_SUBMISSION_MAX: 10, NOBODY_IDS: [], NOBODY_IDS_ADDED: [] };
  return new DeadLetters({ ...config, ...limits }, client, kafka);
}

async function storeDeadLetter(
  { client }: ClickHouseEngine,
  server = '',
): Promise<{ readonly id: string; readonly row: Buffer }> {
  const row = Buffer.from('{"workspace_id":"w","call":"\u00e9"}');
  const id = deadLetterId({ kind: 'rejected', row });
  const place = { kind: 'rejected', format: '1', topic: 't', partition: 0, offset: '7', line: 0, reason: 'BAD' };
  const session = open(client);
  await session.load(STATEMENTS['store-dead-letters'], linesOf([{ ...place, id, row: row.toString('base64') }]), {
    server,
  });
  await session.close();
  return { id, row };
}

function open(client: ClickHouseClient, prefix: string = randomUUID()): ClickHouseSession {
  return new ClickHouseSession(client, prefix, STATEMENT_TIMEOUT_MS);
}

/** Returns a session in which these events are staged. */
async function staged({ client }: ClickHouseEngine, rows: readonly EventRow[]): Promise<ClickHouseSession> {
  const session = open(client);
  await session.run(STATEMENTS['stage-events']);
  if (rows.length > 0) await session.load(STATEMENTS['load-events'], linesOf(rows));
  return session;
}

interface LongInsert {
  /** How its query id begins. */
  readonly prefix: string;
  /** Resolves with the type of ClickHouse's error, or `nothing`. */
  readonly running: Promise<string>;
  readonly session: ClickHouseSession;
}

/**
 * Starts an insert of events of many months, which takes about three seconds, and returns when some of them are stored.
 *
 * @param settings of the insert
 * @param inserting the client that sends the insert
 */
async function longInsert(
  engine: ClickHouseEngine,
  prefix = `${randomUUID()}/`,
  settings: ClickHouseSettings = {},
  inserting: ClickHouseClient = engine.client,
): Promise<LongInsert> {
  const { client } = engine;
  const isInsert = ({ query }: { readonly query: string }) => query === STATEMENTS['store-events'].sql;
  const chosen: Pick<ClickHouseClient, 'command' | 'exec' | 'query'> = {
    command: (call) => (isInsert(call) ? inserting : client).command(call),
    exec: (call) => client.exec(call),
    query: (call) => client.query(call),
  };
  const session = open(chosen as ClickHouseClient, prefix);
  await session.run(STATEMENTS['stage-events']);
  for (let month = 0; month < MONTHS; month += 1) {
    const timestamp = Date.UTC(2026, 2 + month, 1);
    const rows = Array.from({ length: ROWS_A_MONTH }, () => event({ timestamp }));
    await session.load(STATEMENTS['load-events'], linesOf(rows));
  }
  await engine.delayInserts();
  const running = refusalOf(session.run(STATEMENTS['store-events'], epoch(1), { ...MONTH_BY_MONTH, ...settings }));
  await until(engine, async () => (await eventsByMonth(engine)).length > 0);
  return { prefix: `${prefix}/store-events/`, running, session };
}

async function until(engine: ClickHouseEngine, isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await engine.sleep(POLL_MS);
}

function epoch(generation: number): Readonly<Record<string, unknown>> {
  return { group: 'group', incarnation: 1, generation };
}

async function storeChanges({ client }: ClickHouseEngine, rows: readonly ChangeRow[]): Promise<void> {
  const session = open(client);
  await session.run(STATEMENTS['stage-changes']);
  await session.load(STATEMENTS['load-changes'], linesOf(rows));
  await session.run(STATEMENTS['store-deletions']);
  await session.run(STATEMENTS['store-properties']);
  await session.close();
}

/** @param positions topic, partition, the offset from which on, and the next offset */
async function storePositions(
  { client }: ClickHouseEngine,
  generation: number,
  positions: readonly (readonly [string, number, number, number])[],
  server = '',
): Promise<void> {
  const query_params = {
    ...{ group: 'group', incarnation: 1, generation, server },
    topics: positions.map(([topic]) => topic),
    partitions: positions.map(([, partition]) => partition),
    from: positions.map(([, , from]) => from),
    offsets: positions.map(([, , , next]) => next),
    fingerprints: positions.map(() => 'f'),
    leaderEpochs: positions.map(() => 3),
  };
  await client.command({ query: STORAGE_STATEMENTS['store-positions'].sql, query_params });
}

/** Returns how many events are stored of each month of which there are any. */
async function eventsByMonth(engine: ClickHouseEngine): Promise<number[]> {
  const { events = [] } = await engine.rows();
  const byMonth = Map.groupBy(events, (line) => (JSON.parse(line) as unknown[]).at(-1));
  return [...byMonth.values()].map((rows) => rows.length);
}

function change(operation: ChangeRow['operation'], fields: Partial<ChangeRow> = {}): ChangeRow {
  const row = { workspace_id: 'w', kind: 'user', id: 'ada', operation, change_id: randomUUID() } as const;
  return { ...row, version: MARCH_MS * 1_000, ...fields };
}
