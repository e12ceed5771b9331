import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { type BenchDatabase, startBenchEngine } from './engine.ts';
import { median, spread } from './figures.ts';
import { type FilterQuery, filterQueries, NEWEST, queryDirectly, WORKSPACE } from './filter-queries.ts';
import { createTraffic } from './traffic.ts';

const BATCH_ROWS = 50_000;

/** Layouts of `events` by the name of their database. The others are compared with the first. */
const LAYOUTS: Readonly<Record<string, (chosen: Layout) => Layout>> = {
  bare: (chosen) => ({ ...spacious(chosen), indexes: [] }),
  bloom_filters: (chosen) => ({
    ...spacious(chosen),
    indexes: ['user_id', 'group_id', 'anonymous_id', 'instance_id', 'event', 'uuid'].map(
      (column) => `INDEX ${column}_bloom ${column} TYPE bloom_filter GRANULARITY 1`,
    ),
  }),
  projections: (chosen) => ({
    ...spacious(chosen),
    indexes: ['user_id', 'group_id'].map(
      (column) => `PROJECTION by_${column} (SELECT * ORDER BY workspace_id, ${column}, timestamp, toUInt128(uuid))`,
    ),
    settings: `${spacious(chosen).settings}, deduplicate_merge_projection_mode = 'rebuild'`,
  }),
  zstd: (chosen) => ({
    ...chosen,
    columns: chosen.columns.map(withZstd),
    settings: 'index_granularity = 256, min_compress_block_size = 8192, max_compress_block_size = 16384',
  }),
  chosen: (chosen) => chosen,
};

interface Layout {
  readonly columns: readonly string[];
  readonly indexes: readonly string[];
  readonly settings: string;
}

/** Granules and blocks for queries that read thousands of rows. */
function spacious(chosen: Layout): Layout {
  return { ...chosen, columns: chosen.columns.map(withZstd), settings: 'index_granularity = 1024' };
}

function withZstd(column: string): string {
  if (column.includes('LZ4')) return column.replace('LZ4', 'ZSTD(1)');
  return /^`\w+` String/.test(column) ? `${column} CODEC(ZSTD(1))` : column;
}

/**
 * Compares layouts of `events`: the cost of inserts and merges, the size on disk, and the time of pages with the SQL of
 * query-api. Each batch of events goes into all of them, one after the other.
 *
 * @returns whether all events are stored once
 */
export async function benchLayouts(rounds: number, events: number): Promise<boolean> {
  await using engine = await startBenchEngine(12 * 1_024 ** 3);
  const databases = new Map<string, BenchDatabase>();
  for (const [name, layoutOf] of Object.entries(LAYOUTS)) {
    const database = await engine.database(name);
    await recreate(database.client, layoutOf(await readLayout(database.client)));
    databases.set(name, database);
  }
  const insertUs = new Map<string, number>();
  const mergeUs = new Map<string, number>();
  const traffic = createTraffic(events, Date.now() - 60_000);
  await engine.stopMerges();
  for (let stored = 0; stored < events; stored += BATCH_ROWS) {
    const batch = traffic.next(Math.min(BATCH_ROWS, events - stored));
    for (const [name, database] of databases) {
      const inserting = () => database.insert(batch, { input_format_parallel_parsing: 0 });
      insertUs.set(name, (insertUs.get(name) ?? 0) + (await engine.measure(inserting)).cpuUs);
    }
  }
  await engine.resumeMerges();
  for (const [name, { client }] of databases) {
    const merging = async () => void (await client.command({ query: 'OPTIMIZE TABLE events FINAL' }));
    mergeUs.set(name, (await engine.measure(merging)).cpuUs);
  }

  const bare = databases.get('bare') as BenchDatabase;
  const queries = [NEWEST, ...(await filterQueries(bare.client, WORKSPACE))];
  const pages = await measurePages(databases, queries, rounds);
  const table: Record<string, Record<string, string>> = {};
  const perEvent = (sums: Map<string, number>, name: string) => (sums.get(name) ?? Number.NaN) / events;
  for (const [name, { client }] of databases) {
    const cost = perEvent(insertUs, name);
    const merging = perEvent(mergeUs, name);
    table[name] = {
      'CPU µs an event, insert': `${cost.toFixed(1)} (× ${(cost / perEvent(insertUs, 'bare')).toFixed(2)})`,
      'CPU µs an event, a merge of all': `${merging.toFixed(1)} (× ${(merging / perEvent(mergeUs, 'bare')).toFixed(2)})`,
      'bytes an event on disk': ((await bytesOnDisk(client)) / events).toFixed(0),
    };
  }
  console.log(`${events.toLocaleString('en')} events, pages: ms, median (lowest to highest) of ${rounds}`);
  console.table(table);
  console.table(pages);
  const verdicts: boolean[] = [];
  for (const database of databases.values()) verdicts.push(await database.verdict(events));
  return verdicts.every(Boolean);
}

async function measurePages(
  databases: ReadonlyMap<string, BenchDatabase>,
  queries: readonly FilterQuery[],
  rounds: number,
): Promise<Record<string, Record<string, string>>> {
  const table: Record<string, Record<string, string>> = {};
  const newest = new Map<string, number>();
  for (const query of queries) {
    const line: Record<string, string> = {};
    for (const [name, { client }] of databases) {
      const times: number[] = [];
      for (let round = -1; round < rounds; round += 1) {
        const { ms } = await queryDirectly(client, query);
        // Round -1 warms up.
        if (round >= 0) times.push(ms);
      }
      if (query === NEWEST) newest.set(name, median(times));
      line[name] = `${spread(times)} × ${(median(times) / (newest.get(name) ?? Number.NaN)).toFixed(1)}`;
    }
    table[query.name] = line;
  }
  return table;
}

/** The layout of the migrations. */
async function readLayout(client: ClickHouseClient): Promise<Layout> {
  const result = await client.query({ query: 'SHOW CREATE TABLE events', format: 'TabSeparatedRaw' });
  const lines = (await result.text()).split('\n').map((line) => line.trim().replace(/,$/, ''));
  const settings = (lines.find((line) => line.startsWith('SETTINGS ')) ?? '').slice('SETTINGS '.length);
  return {
    columns: lines.filter((line) => line.startsWith('`')),
    indexes: lines.filter((line) => line.startsWith('INDEX ')),
    settings: settings.split(', ').slice(0, 3).join(', '),
  };
}

async function recreate(client: ClickHouseClient, { columns, indexes, settings }: Layout): Promise<void> {
  await client.command({ query: 'DROP TABLE events SYNC' });
  await client.command({
    query: `CREATE TABLE events (${[...columns, ...indexes].join(',\n')})
      ENGINE = ReplacingMergeTree PARTITION BY toYYYYMM(timestamp) ORDER BY (workspace_id, timestamp, toUInt128(uuid))
      SETTINGS ${settings}`,
  });
}

async function bytesOnDisk(client: ClickHouseClient): Promise<number> {
  const query = `SELECT sum(bytes_on_disk) AS bytes FROM system.parts
    WHERE database = currentDatabase() AND table = 'events' AND active`;
  const result = await client.query({ query, format: 'JSONEachRow' });
  return (await result.json<{ bytes: number }>())[0]?.bytes ?? Number.NaN;
}
