import { Agent } from 'node:http';
import { filterQueries, NEWEST, WORKSPACE } from '../data/filter-queries.ts';
import { storeTraffic } from '../data/store-traffic.ts';
import { createTraffic, DAY_MS } from '../data/traffic.ts';
import { measureRequests, page } from '../measure/measured-requests.ts';
import type { BenchDatabase } from '../processes/database.ts';
import { BenchEngine } from '../processes/engine.ts';
import { QueryApi, send } from '../processes/query-api.ts';
import { type Bar, type Benchmark, type Figure, figureOf } from '../report/benchmark.ts';

/** The events were all received longer ago than what is recompressed. */
const AGE_DAYS = 60;
const MONTH_DAYS = 28;

const PAGES_BAR = { atMost: 1.5 };

/** How the same events are stored: the statements that lead there from the newest schema, and the bar of disk ÷ JSON. */
const STATES: readonly State[] = [
  {
    name: 'small blocks, LZ4',
    database: 'small_blocks',
    statements: [
      'ALTER TABLE events REMOVE TTL',
      ...['properties', 'context'].map(
        (column) =>
          `ALTER TABLE events MODIFY COLUMN ${column} RESET SETTING min_compress_block_size, max_compress_block_size`,
      ),
    ],
  },
  {
    name: 'month with new events',
    database: 'open_month',
    statements: ['ALTER TABLE events REMOVE TTL'],
    bar: { atMost: 0.35 },
  },
  { name: 'closed month', database: 'closed_month', statements: [], bar: { atMost: 0.25 } },
];

interface State {
  readonly name: string;
  readonly database: string;
  readonly statements: readonly string[];
  readonly bar?: Bar;
}

export const BYTES: Benchmark<{ rounds: number; events: number }> = {
  name: 'bytes',
  title: 'What an event takes on disk',
  method:
    'The same product traffic of a month, merged into one part, as it is stored while the month gets events and once it is closed; and, to compare, as both ' +
    'were stored before documents had larger blocks and closed months were recompressed. Columns and indexes are without their marks. The JSON is that of ' +
    '`GET /events/export`. Then pages of the three in turn: their CPU is that of ClickHouse and query-api, and is divided by that of the first state.',
  size: { rounds: 5, events: 400_000 },
  measure,
};

async function measure({ rounds, events }: { rounds: number; events: number }): Promise<readonly Figure[]> {
  await using engine = await BenchEngine.start(6 * 1_024 ** 3);
  await using running = new AsyncDisposableStack();
  const stored: Stored[] = [];
  const figures: Figure[] = [];
  for (const state of STATES) {
    const database = await engine.createDatabase(state.database);
    for (const query of state.statements) await database.client.command({ query });
    await storeTraffic(database, createTraffic(events, Date.now() - AGE_DAYS * DAY_MS, MONTH_DAYS), events);
    await engine.settleMerges();
    await database.mergeMonths();
    await database.expectExactly(events);
    const api = running.use(await QueryApi.start(engine.url, state.database, WORKSPACE));
    stored.push({ database, api });
    figures.push(...(await measureDisk(database, state, events, await jsonBytes(api))));
  }
  return [...figures, ...(await measurePages(engine, stored, rounds))];
}

/** Returns how many bytes an event has as JSON. */
async function jsonBytes(api: QueryApi): Promise<number> {
  const agent = new Agent();
  let bytes = 0;
  let lines = 0;
  for await (const chunk of await send(`${api.url}/events/export?startDate=2000-01-01&format=ndjson`, agent)) {
    bytes += chunk.length;
    for (const byte of chunk as Buffer) if (byte === 10) lines += 1;
  }
  agent.destroy();
  // The last line says that the export is complete.
  return bytes / (lines - 1);
}

/** A state of {@link STATES}, with its events. */
interface Stored {
  readonly database: BenchDatabase;
  readonly api: QueryApi;
}

interface Piece {
  readonly name: string;
  readonly bytes: number;
}

async function measureDisk(
  database: BenchDatabase,
  { name: state, bar }: State,
  events: number,
  json: number,
): Promise<Figure[]> {
  const own = "database = currentDatabase() AND table = 'events'";
  const pieces = await database.read<Piece>(
    `SELECT concat('column ', column) AS name, sum(column_data_compressed_bytes) AS bytes FROM system.parts_columns
     WHERE ${own} AND active GROUP BY column
     UNION ALL
     SELECT concat('index ', name), data_compressed_bytes FROM system.data_skipping_indices WHERE ${own}
     UNION ALL
     SELECT concat('projection ', name), sum(bytes_on_disk) FROM system.projection_parts WHERE ${own} AND active GROUP BY name`,
  );
  const [parts] = await database.read<{ bytes: number }>(
    `SELECT sum(bytes_on_disk) AS bytes FROM system.parts WHERE ${own} AND active`,
  );
  const all = Number(parts?.bytes);
  const known = pieces.reduce((sum, { bytes }) => sum + Number(bytes), 0);
  const rows = [
    ...pieces.map(({ name, bytes }) => [name.replace(/^(\w+) (\w+)$/, '$1 `$2`'), Number(bytes)] as const).sort(),
    ['marks, sorting key and names of files', all - known],
    ['all on disk', all],
    ['JSON', json * events],
  ] as const;
  const table = 'Bytes of an event';
  return [
    ...rows.map(([row, bytes]) => ({ table, ...figureOf(row, state, 'bytes', [bytes / events]) })),
    { table, ...figureOf('on disk ÷ JSON', state, '', [all / events / json], bar) },
  ];
}

async function measurePages(engine: BenchEngine, stored: readonly Stored[], rounds: number): Promise<Figure[]> {
  const [first] = stored;
  const queries = [NEWEST, ...(first ? await filterQueries(first.database, WORKSPACE) : [])];
  const nameOf = (query: string, index: number) => `${query}, ${STATES[index]?.name}`;
  const costOf = await measureRequests(
    engine,
    rounds,
    queries.flatMap(({ name, parameters }) =>
      stored.map(({ api }, index) => page(nameOf(name, index), api, { ...parameters, total: 'none' })),
    ),
  );
  return queries.flatMap(({ name }) => {
    const cpuOf = (index: number) => costOf(nameOf(name, index)).cpuMs;
    const small = { table: 'Pages', ...figureOf(name, 'small blocks, LZ4', 'ms', [cpuOf(0)]) };
    const others = STATES.slice(1).map((state, index) => {
      const column = `${state.name} ÷ it`;
      return { table: 'Pages', ...figureOf(name, column, '', [cpuOf(index + 1) / cpuOf(0)], PAGES_BAR) };
    });
    return [small, ...others];
  });
}
