import { createWriteStream } from 'node:fs';
import { mkdtemp, open, readFile, rm, stat } from 'node:fs/promises';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { cpuTimeUs } from './cpu-time.ts';
import { startBenchEngine } from './engine.ts';
import { median, spread } from './figures.ts';
import { WORKSPACE } from './filter-queries.ts';
import { storeTraffic } from './query.ts';
import { type QueryApi, send, startQueryApi } from './query-api.ts';
import { createTraffic } from './traffic.ts';

const DAYS = 1_080;
const EXPORT = '/events/export?startDate=2000-01-01';
const FORMATS = ['ndjson', 'csv', 'parquet'] as const;
const SAMPLE_MS = 20;

/** The bars of NDJSON, in events a second and in MiB of query-api's resident memory. */
const SPEED_BAR = 200_000;
const MEMORY_BAR = 150;

interface Sample {
  readonly events: number;
  readonly bytes: number;
  readonly ms: number;
  /** The highest resident memory of query-api meanwhile, in MiB. */
  readonly memory: number;
  /** CPU time of query-api, in microseconds. */
  readonly cpuUs: number;
}

/** Measures exports of everything to a file, through query-api as a process. Returns whether the bars are met. */
export async function benchExport(rounds: number, events: number): Promise<boolean> {
  await using engine = await startBenchEngine();
  const database = await engine.database('export');
  await storeTraffic(database, createTraffic(events, Date.now() - 60_000, DAYS), events);
  await engine.settleMerges();
  if (!(await database.verdict(events))) return false;

  await using api = await startQueryApi(engine.url, 'export', WORKSPACE);
  const folder = await mkdtemp(join(tmpdir(), 'sluice-export-'));
  try {
    const { body } = await api.get('/events', { limit: '1' });
    const expected = body.total ?? Number.NaN;
    console.log(`\nquery-api takes ${(await residentMebibytes(api.pid)).toFixed(0)} MiB before the first export`);
    const table: Record<string, Record<string, string>> = {};
    let met = true;
    for (const format of FORMATS) {
      const samples: Sample[] = [];
      for (let round = 0; round < rounds; round += 1) samples.push(await measure(api, format, folder, expected));
      table[format] = describe(samples);
      if (format === 'ndjson') met = printVerdict(samples);
    }
    console.table(table);
    return met;
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function measure(api: QueryApi, format: string, folder: string, expected: number): Promise<Sample> {
  const file = join(folder, 'events');
  const agent = new Agent();
  let memory = 0;
  const sampling = setInterval(async () => {
    memory = Math.max(memory, await residentMebibytes(api.pid));
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
  return { events: expected, bytes: size, ms, memory, cpuUs };
}

/** @throws when the export is not complete: then nothing that follows means anything */
async function expectTrailer(file: string, size: number, events: number): Promise<void> {
  const trailer = `\n{"complete":true,"events":${events}}\n`;
  const handle = await open(file);
  try {
    const { buffer } = await handle.read(Buffer.alloc(trailer.length), 0, trailer.length, size - trailer.length);
    if (buffer.toString() !== trailer) throw new Error(`VOID: the export ends with ${buffer}`);
  } finally {
    await handle.close();
  }
}

function describe(samples: readonly Sample[]): Record<string, string> {
  return {
    'events/s': spread(samples.map(({ events, ms }) => (1_000 * events) / ms)),
    'MB/s': spread(samples.map(({ bytes, ms }) => bytes / ms / 1_000)),
    'bytes an event': spread(samples.map(({ bytes, events }) => bytes / events)),
    'µs of query-api an event': spread(
      samples.map(({ cpuUs, events }) => cpuUs / events),
      2,
    ),
    'MiB of query-api': spread(samples.map(({ memory }) => memory)),
  };
}

function printVerdict(samples: readonly Sample[]): boolean {
  const speed = median(samples.map(({ events, ms }) => (1_000 * events) / ms));
  const memory = Math.max(...samples.map((sample) => sample.memory));
  const verdict = (met: boolean) => (met ? 'met' : 'MISSED');
  console.log(`NDJSON, ${SPEED_BAR.toLocaleString('en')} events/s: ${verdict(speed >= SPEED_BAR)}`);
  console.log(`NDJSON, at most ${MEMORY_BAR} MiB in query-api: ${verdict(memory <= MEMORY_BAR)}`);
  return speed >= SPEED_BAR && memory <= MEMORY_BAR;
}

async function residentMebibytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1_024;
}
