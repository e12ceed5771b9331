import { createWriteStream } from 'node:fs';
import { mkdtemp, open, rm, stat } from 'node:fs/promises';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { WORKSPACE } from '../data/filter-queries.ts';
import { storeTraffic } from '../data/store-traffic.ts';
import { createTraffic, LONG_DAYS } from '../data/traffic.ts';
import { cpuTimeUs, residentBytes } from '../measure/cpu-time.ts';
import { BenchEngine } from '../processes/engine.ts';
import { QueryApi, send } from '../processes/query-api.ts';
import { type Benchmark, type Figure, figureOf, VoidRun } from '../report/benchmark.ts';

const EXPORT = '/events/export?startDate=2000-01-01';
const FORMATS = ['ndjson', 'csv', 'parquet'] as const;
const SAMPLE_MS = 20;
const MEBIBYTE = 2 ** 20;

type Format = (typeof FORMATS)[number];

/** The bars of NDJSON, in events a second and in MiB of query-api's resident memory. */
const SPEED_BAR = { atLeast: 200_000 };
const MEMORY_BAR = { atMost: 150 };

export const EXPORT_BENCHMARK: Benchmark<{ rounds: number; events: number }> = {
  name: 'export',
  title: 'Exports',
  method:
    '`GET /events/export` of all events of the largest workspace, seven in ten of those stored, to a file. Events of 800 bytes. ' +
    'The memory is the highest of query-api meanwhile.',
  size: { rounds: 3, events: 2_000_000 },
  measure,
};

interface Sample {
  readonly events: number;
  readonly bytes: number;
  readonly ms: number;
  /** The highest resident memory of query-api meanwhile, in MiB. */
  readonly memory: number;
  /** CPU time of query-api, in microseconds. */
  readonly cpuUs: number;
}

async function measure({ rounds, events }: { rounds: number; events: number }): Promise<readonly Figure[]> {
  await using engine = await BenchEngine.start();
  const database = await engine.createDatabase('export');
  await storeTraffic(database, createTraffic(events, Date.now() - 60_000, LONG_DAYS), events);
  await engine.settleMerges();
  await database.expectExactly(events);

  await using api = await QueryApi.start(engine.url, 'export', WORKSPACE);
  const folder = await mkdtemp(join(tmpdir(), 'sluice-export-'));
  try {
    const { body } = await api.get('/events', { limit: '1' });
    const expected = body.total ?? Number.NaN;
    const figures = [figureOf('before the first export', 'memory', 'MiB', [(await residentBytes(api.pid)) / MEBIBYTE])];
    for (const format of FORMATS) {
      const samples: Sample[] = [];
      for (let round = 0; round < rounds; round += 1) samples.push(await exportOnce(api, format, folder, expected));
      figures.push(...figuresOf(format, samples));
    }
    return figures;
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function exportOnce(api: QueryApi, format: Format, folder: string, expected: number): Promise<Sample> {
  const file = join(folder, 'events');
  const agent = new Agent();
  let bytes = 0;
  const sampling = setInterval(async () => {
    bytes = Math.max(bytes, await residentBytes(api.pid));
  }, SAMPLE_MS);
  const cpuBefore = await cpuTimeUs(api.pid);
  const startedAt = performance.now();
  try {
    await pipeline(await send(`${api.url}${EXPORT}&format=${format}`, agent), createWriteStream(file));
  } finally {
    clearInterval(sampling);
    agent.destroy();
  }
  const ms = performance.now() - startedAt;
  const cpuUs = (await cpuTimeUs(api.pid)) - cpuBefore;
  const { size } = await stat(file);
  if (format === 'ndjson') await expectTrailer(file, size, expected);
  return { events: expected, bytes: size, ms, memory: bytes / MEBIBYTE, cpuUs };
}

/** @throws {VoidRun} when the export is not complete */
async function expectTrailer(file: string, size: number, events: number): Promise<void> {
  const trailer = `\n{"complete":true,"events":${events}}\n`;
  const handle = await open(file);
  try {
    const { buffer } = await handle.read(Buffer.alloc(trailer.length), 0, trailer.length, size - trailer.length);
    if (buffer.toString() !== trailer) throw new VoidRun(`the export ends with ${buffer}`);
  } finally {
    await handle.close();
  }
}

function figuresOf(format: Format, samples: readonly Sample[]): Figure[] {
  const figure = (column: string, unit: string, read: (sample: Sample) => number, bar?: Figure['bar']) =>
    figureOf(format, column, unit, samples.map(read), format === 'ndjson' ? bar : undefined);
  return [
    figure('memory', 'MiB', ({ memory }) => memory, MEMORY_BAR),
    figure('events', '/s', ({ events, ms }) => (1_000 * events) / ms, SPEED_BAR),
    figure('speed', 'MB/s', ({ bytes, ms }) => bytes / ms / 1_000),
    figure('size of an event', 'bytes', ({ bytes, events }) => bytes / events),
    figure('CPU of query-api an event', 'µs', ({ cpuUs, events }) => cpuUs / events),
  ];
}
