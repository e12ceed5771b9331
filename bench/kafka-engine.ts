import { until } from '@sluice/shared/testing/until';
import { stagingColumns } from '../services/writer/src/clickhouse/statements.ts';
import type { Bench } from './pipeline.ts';
import { difference, type System } from './system.ts';

const LOAD_MS = { whole: 15_000, quick: 4_000 };
const TIMEOUT_MS = 300_000;
const DATABASE = 'kafka_engine';

/** The columns of an event's row, as the writer stages it. The Kafka engine takes no defaults. */
const ROW_COLUMNS = stagingColumns('events').replace(/ DEFAULT '[^']*'/g, '');

const STORED_COLUMNS =
  'workspace_id, timestamp, uuid, event, user_id, group_id, anonymous_id, instance_id, properties, context, traits, received_at';

interface Figures {
  readonly eventsPerSecond: number;
  /** CPU time of ClickHouse, and of the writer where it stores, in microseconds an event. */
  readonly cpuUs: number;
}

/**
 * Compares the writer with what ClickHouse brings itself: a table of the Kafka engine and a materialized view, which read
 * the same rows from the same topic into a table like `events`. The engine reads the whole topic, the writer its end.
 *
 * The engine stores rows at least once: after a crash, or a rebalance at the wrong moment, a block is stored again. It
 * looks up no repeats, knows no deletions, stores no users and organizations, keeps no rows that it cannot parse, and
 * notices no log that was cut off.
 */
export async function compareKafkaEngine(bench: Bench, quick: boolean): Promise<Record<string, string>> {
  const { system, loader, tally } = bench;
  const { pipeline } = system;
  await pipeline.services.writer.kill9();
  const load = { eventsPerRequest: 20, connections: 64, durationMs: quick ? LOAD_MS.quick : LOAD_MS.whole };
  const backlog = await loader.run({ ...system.target, ...load, firstEvent: tally.events });
  tally.add(backlog);

  const engine = await measure(system, tally.events, {
    start: () => startEngine(system),
    rows: async () => Number(await system.query(`SELECT count() FROM ${DATABASE}.events`)),
  });
  await system.query(`DROP DATABASE ${DATABASE} SYNC`);
  const before = (await system.stored()).rows;
  const writer = await measure(system, backlog.events, {
    start: () => pipeline.restart('writer'),
    rows: async () => (await system.stored()).rows - before,
  });
  const lines = {
    'Kafka engine, events/s': engine.eventsPerSecond.toFixed(0),
    'Kafka engine, CPU µs an event': engine.cpuUs.toFixed(1),
    'writer, events/s': writer.eventsPerSecond.toFixed(0),
    'writer, CPU µs an event': writer.cpuUs.toFixed(1),
  };
  console.log(
    "\na backlog, stored by ClickHouse's Kafka engine and by the writer; CPU of ClickHouse and of the writer",
  );
  console.table(lines);
  return lines;
}

/** Measures from the first stored rows until as many are stored as expected, and merged. */
async function measure(
  system: System,
  expected: number,
  { start, rows }: { readonly start: () => Promise<void>; readonly rows: () => Promise<number> },
): Promise<Figures> {
  const before = await system.cpuTimes(['ClickHouse']);
  await start();
  await until('the first rows', async () => (await rows()) > 0, TIMEOUT_MS);
  const first = await rows();
  const startedAt = performance.now();
  await until('all rows', async () => (await rows()) >= expected, TIMEOUT_MS);
  const seconds = (performance.now() - startedAt) / 1_000;
  await system.mergesSettled();
  const used = difference(before, await system.cpuTimes(['ClickHouse']));
  const ofWriter = (await system.cpuTimes(['writer']).catch(() => ({ writer: 0 })))['writer'] ?? 0;
  return { eventsPerSecond: (expected - first) / seconds, cpuUs: ((used['ClickHouse'] ?? 0) + ofWriter) / expected };
}

async function startEngine({ query, kafkaBrokers, pipeline }: System): Promise<void> {
  await query(`CREATE DATABASE ${DATABASE}`);
  await query(`CREATE TABLE ${DATABASE}.events AS ${pipeline.database}.events`);
  await query(
    `CREATE TABLE ${DATABASE}.rows (${ROW_COLUMNS}) ENGINE = Kafka SETTINGS kafka_broker_list = '${kafkaBrokers.join()}', ` +
      `kafka_topic_list = 'bench.events', kafka_group_name = 'kafka-engine', kafka_format = 'JSONEachRow', ` +
      `kafka_max_block_size = 65536, kafka_flush_interval_ms = 500`,
  );
  await query(
    `CREATE MATERIALIZED VIEW ${DATABASE}.consumer TO ${DATABASE}.events AS SELECT ${STORED_COLUMNS} FROM ${DATABASE}.rows`,
  );
}
