import { readFile } from 'node:fs/promises';
import { readMetric } from '../metrics.ts';
import { type AnyServiceName, SERVICE_NAMES, type Service } from '../service.ts';
import type { Product } from './product.ts';
import { Growth, type Held, heldBy, heldTooMuch } from './remains.ts';

const MEBIBYTE = 1_024 * 1_024;

/** The processes of the arena. */
const WATCHED: readonly AnyServiceName[] = [...SERVICE_NAMES, 'trench-api'];

/** The memory of each container in docker-compose.yml, and the heap that Node.js gives itself in it. */
export const MEMORY: Readonly<Record<AnyServiceName, { readonly bytesMax: number; readonly heapMebibytes: number }>> = {
  'ingest-api': { bytesMax: 512 * MEBIBYTE, heapMebibytes: 280 },
  writer: { bytesMax: 1_024 * MEBIBYTE, heapMebibytes: 540 },
  'query-api': { bytesMax: 512 * MEBIBYTE, heapMebibytes: 280 },
  'trench-api': { bytesMax: 512 * MEBIBYTE, heapMebibytes: 280 },
};

/** How long the event loop may be blocked, in milliseconds. */
const BLOCK_MS_MAX = 100;

export type Services = Readonly<Record<AnyServiceName, Service>>;

/** The longest block of each service's event loop since the last call, in milliseconds. */
export class BlockMeter {
  readonly #services: Services;
  readonly #waitedMs = new Map<AnyServiceName, number>();

  constructor(services: Services) {
    this.#services = services;
  }

  /**
   * Returns the blocks that were too long, as a person reads them. The time in which the main thread could run and was given
   * no processor is the machine's: all of it in this time counts as part of the block.
   */
  async take(): Promise<string[]> {
    const found = await Promise.all(WATCHED.map(async (name) => await this.#takeOne(name)));
    return found.flat();
  }

  async #takeOne(name: AnyServiceName): Promise<string[]> {
    const service = this.#services[name];
    const blockMs = 1_000 * (await readMetric(service, 'nodejs_eventloop_lag_max_seconds'));
    const waitedMs = await mainThreadWaitedMs(service.pid);
    const unscheduledMs = waitedMs - (this.#waitedMs.get(name) ?? waitedMs);
    this.#waitedMs.set(name, waitedMs);
    if (blockMs - unscheduledMs <= BLOCK_MS_MAX) return [];
    return [
      `the event loop of ${name} was blocked for ${blockMs.toFixed(0)} ms, of which it had no processor for ${unscheduledMs.toFixed(0)} ms at most`,
    ];
  }
}

/** How long the main thread of a process has waited for a processor (Documentation/scheduler/sched-stats.rst). */
async function mainThreadWaitedMs(pid: number): Promise<number> {
  const [, waitedNs = '0'] = (await readFile(`/proc/${pid}/task/${pid}/schedstat`, 'utf8')).trim().split(' ');
  return Number(waitedNs) / 1e6;
}

/** Returns which services have had more resident memory than their container would have given them. */
export async function memoryFaults(services: Services): Promise<string[]> {
  const found = await Promise.all(
    WATCHED.map(async (name) => {
      const status = await readFile(`/proc/${services[name].pid}/status`, 'utf8').catch(() => '');
      if (status === '') return [`${name} has ended: ${services[name].log().slice(-2_000)}`];
      const bytes = Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1_024;
      const { bytesMax } = MEMORY[name];
      if (bytes <= bytesMax) return [];
      return [`${name} had ${(bytes / MEBIBYTE).toFixed(0)} MiB of memory, and ${bytesMax / MEBIBYTE} MiB are allowed`];
    }),
  );
  return found.flat();
}

/** What is not zero although nobody sends anything; empty when the services are idle. */
export async function notIdle(services: Services): Promise<string[]> {
  const { 'ingest-api': ingest, 'query-api': query } = services;
  const values = {
    'memory that ingest-api has reserved, in bytes': await readMetric(ingest, 'sluice_ingest_reserved_bytes'),
    'queries of query-api that run': await readMetric(query, 'sluice_queries', { state: 'running' }),
    'queries of query-api that wait': await readMetric(query, 'sluice_queries', { state: 'waiting' }),
    'memory that query-api has reserved, in bytes': await readMetric(query, 'sluice_query_reserved_bytes'),
    'listeners of query-api': await readMetric(query, 'sluice_stream_listeners'),
  };
  return Object.entries(values).flatMap(([what, value]) => (value === 0 ? [] : [`${what}: ${value}`]));
}

/** What the processes hold, compared with what they held before the first round. */
export class HeldMeter {
  readonly #services: () => Services;
  readonly #before: ReadonlyMap<AnyServiceName, Held>;
  readonly #growth = new Growth();

  private constructor(services: () => Services, before: ReadonlyMap<AnyServiceName, Held>) {
    this.#services = services;
    this.#before = before;
  }

  static async start(services: () => Services): Promise<HeldMeter> {
    return new HeldMeter(services, await heldByAll(services()));
  }

  /** Returns what is held too much, with the doors in whose rounds there was more of it than ever before. */
  async take(): Promise<readonly string[]> {
    const now = await heldByAll(this.#services());
    return [...now].flatMap(([name, held]) =>
      heldTooMuch(name, this.#before.get(name) as Held, held).map((what) => `${what}; ${this.#growth.of(name)}`),
    );
  }

  /** After the round of these products. */
  async note(products: readonly Product[]): Promise<void> {
    for (const [name, held] of await heldByAll(this.#services())) this.#growth.note(name, held, products);
  }
}

async function heldByAll(services: Services): Promise<ReadonlyMap<AnyServiceName, Held>> {
  return new Map(await Promise.all(WATCHED.map(async (name) => [name, await heldBy(services[name])] as const)));
}

/** How many files and sockets each service has open. */
export async function openFiles(services: Services): Promise<ReadonlyMap<AnyServiceName, number>> {
  const entries = WATCHED.map(async (name) => [name, await readMetric(services[name], 'process_open_fds')] as const);
  return new Map(await Promise.all(entries));
}
