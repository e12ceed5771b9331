import { fork } from 'node:child_process';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import { setTimeout } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { findFreePorts } from '@sluice/local-stack/ports';
import { DnsServer } from '@sluice/query-api/testing/dns-server';
import { WEBHOOKS_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { until } from '@sluice/shared/testing/until';
import { type Pipeline, type PipelineOptions, startPipeline } from '../pipeline.ts';
import { SERVICE_NAMES, type Service, startService } from '../service.ts';
import { clickHouseWithSql, SQL_DATABASE, SQL_ENV } from '../sql.ts';
import { createBelongings, setWebhooks } from './belongings.ts';
import { BusyMeter } from './busy-meter.ts';
import type { HostileService } from './door.ts';
import type { HostileLoad, HostileOutcome, HostileTask } from './hostile-load.ts';
import { KINDS } from './ordinary-kinds.ts';
import type { OrdinaryLoad, OrdinaryOutcome } from './ordinary-load.ts';
import { BlockMeter, HeldMeter, MEMORY, memoryFaults, notIdle, openFiles, type Services } from './processes.ts';
import type { Product } from './product.ts';
import { Receivers } from './receivers.ts';
import { locksOf, runsOn } from './remains.ts';
import { createWorld } from './world.ts';

/** What was wrong in a round. */
export interface Verdict {
  /** Wrong whatever the machine does: statuses, contents, memory, what is not given back. */
  readonly wrong: readonly string[];
  /** Too slow: another round has to say so, too. */
  readonly slow: readonly string[];
  /** Event loops that were blocked: a request by itself has to block them, too. */
  readonly blocked: readonly string[];
  /** What would be too slow, while others used the machine. */
  readonly unjudged: readonly string[];
  readonly responses: number;
  readonly unavailable: number;
}

export interface ArenaOptions {
  readonly kafkaBrokers: readonly string[];
  /** Names the topics. */
  readonly name: string;
  /** What query-api is configured with besides. Default nothing. */
  readonly env?: Readonly<Record<string, string>>;
}

/** How long the requests of a round are sent again and again, in milliseconds. */
const ROUND_MS = 2_000;

/** How long a query may take, in milliseconds. */
const QUERY_TIMEOUT_MS = 10_000;

/** How long the ordinary tenant is alone before the first round, in milliseconds, and how many requests of each kind at least. */
const ALONE_MS = 4_000;
const ALONE_REQUESTS_MIN = 4;

/** How many threads make the machine busy meanwhile, for each of its processors: hostile requests keep more of them busy. */
const BUSY_THREADS = 2;

/** The other tenant may wait so many times as long as then, or so many milliseconds. */
const SLOWER_MAX = 3;
const SLOW_MS = 200;

/** As {@link SLOW_MS}, for the next event of a stream: it comes with the next batch of the writer, which all tenants share. */
const SLOW_STREAM_MS = 2_000;

/** How long the services may take until they are idle, in milliseconds. */
const IDLE_MS_MAX = 30_000;

/** Sockets to ClickHouse, Kafka and metrics that may stay open: as many as pools keep. */
const KEPT_FILES_MAX = 64;

/** How long a receiver of webhooks may take, in milliseconds. */
const WEBHOOK_TIMEOUT_MS = 2_000;

const ADMIN_KEY = 'admin-of-the-arena';

/** The whole system, an ordinary tenant and a hostile one. */
export class Arena implements AsyncDisposable {
  readonly #started: AsyncDisposableStack;
  readonly #clickhouseUrl: string;
  readonly #pipeline: Pipeline;
  readonly #load: HostileLoad;
  readonly #ordinaryLoad: OrdinaryLoad;
  #trench: Service;
  #hostile: Worker | undefined;
  #ordinary: Worker | undefined;
  #alone: ReadonlyMap<string, number> = new Map();
  #files: ReadonlyMap<string, number> = new Map();
  #held: HeldMeter | undefined;

  private constructor(
    started: AsyncDisposableStack,
    parts: {
      clickhouseUrl: string;
      pipeline: Pipeline;
      trench: Service;
      load: HostileLoad;
      ordinaryLoad: OrdinaryLoad;
    },
  ) {
    this.#started = started;
    this.#clickhouseUrl = parts.clickhouseUrl;
    this.#pipeline = parts.pipeline;
    this.#trench = parts.trench;
    this.#load = parts.load;
    this.#ordinaryLoad = parts.ordinaryLoad;
  }

  static async start({ kafkaBrokers, name, env = {} }: ArenaOptions): Promise<Arena> {
    await using starting = new AsyncDisposableStack();
    const { url: clickhouseUrl } = starting.use(await clickHouseWithSql());
    const receivers = starting.use(await Receivers.start());
    const dns = starting.use(await DnsServer.start());
    const pipeline = starting.use(
      await startPipeline(pipelineOptions({ kafkaBrokers, name, clickhouseUrl, dns, env })),
    );
    const trench = await startTrench(pipeline);
    const keys = { hostile: await pipeline.addKey('hostile'), ordinary: await pipeline.addKey('ordinary') };
    await createWorld(pipeline, keys);
    const control = fork(new URL('./control.ts', import.meta.url), { stdio: 'inherit' });
    starting.defer(() => control.disconnect());
    const [{ port }] = (await once(control, 'message')) as [{ port: number }];
    const urls: Readonly<Record<HostileService, string>> = {
      'ingest-api': pipeline.services['ingest-api'].url,
      'query-api': pipeline.services['query-api'].url,
      'trench-api': trench.url,
    };
    const of = { urls, key: keys.hostile, adminKey: ADMIN_KEY, receiver: receivers.url };
    const load = { urls, belongings: await createBelongings(of), queryTimeoutMs: QUERY_TIMEOUT_MS };
    const ordinaryLoad = {
      ingestUrl: urls['ingest-api'],
      queryUrl: urls['query-api'],
      controlUrl: `http://127.0.0.1:${port}`,
      key: keys.ordinary,
    };
    const arena = new Arena(starting.move(), { clickhouseUrl, pipeline, trench, load, ordinaryLoad });
    await arena.#setWebhooks('paused');
    await arena.#begin();
    return arena;
  }

  /** Starts the APIs again, so that what earlier rounds left behind counts for no later one. */
  async restart(): Promise<void> {
    await this.#endLoads();
    for (const name of ['ingest-api', 'query-api'] as const) {
      await this.#pipeline.killAndRestart(name);
    }
    await this.#trench.kill9();
    this.#trench = this.#trench.again();
    await this.#trench.ready();
    await this.#begin();
  }

  /** Sends the products of one tenant while another one works. @param durationMs default 2,000 */
  async round(products: readonly Product[], durationMs: number = ROUND_MS): Promise<Verdict> {
    await this.#setWebhooks('active');
    const blocks = new BlockMeter(this.#services);
    await blocks.take();
    const busy = new BusyMeter();
    await busy.take();
    await this.#takeOrdinary('take');
    const task: HostileTask = { products, durationMs };
    const outcome = await this.#ask<HostileOutcome>(this.#hostile, task);
    const stillRuns = await runsOn(this.#clickhouseUrl, products);
    const ordinary = await this.#takeOrdinary('pause');
    const isBusy = await busy.take();
    const blocked = await blocks.take().catch((error: Error) => [`a service does not respond: ${error.message}`]);
    await this.#setWebhooks('paused');
    const wrong = [
      ...outcome.faults,
      ...ordinary.faults,
      ...(await memoryFaults(this.#services)),
      ...(await this.#idleFaults()),
    ];
    await this.#held?.note(products);
    const slow = [...outcome.cut, ...stillRuns, ...this.#slowKinds(ordinary)];
    const { responses, unavailable } = outcome;
    return { wrong, blocked, slow: isBusy ? [] : slow, unjudged: isBusy ? slow : [], responses, unavailable };
  }

  /** Sends each product once, and nothing beside it. Returns which event loops were blocked. */
  async blocksOf(product: Product): Promise<readonly string[]> {
    const blocks = new BlockMeter(this.#services);
    await blocks.take();
    await this.#ask<HostileOutcome>(this.#hostile, { products: [product], durationMs: 0 });
    return await blocks.take();
  }

  /** What stays open when nobody sends anything. */
  async leaks(): Promise<readonly string[]> {
    await this.#endLoads();
    let found: string[] = [];
    await until(
      'sockets to be closed',
      async () => {
        found = [...(await openFiles(this.#services))].flatMap(([name, count]) => {
          const before = this.#files.get(name) ?? 0;
          return count <= before + KEPT_FILES_MAX
            ? []
            : [`${name} has ${count} files and sockets open, and had ${before}`];
        });
        return found.length === 0;
      },
      IDLE_MS_MAX,
    ).catch(() => undefined);
    return found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#endLoads();
    await this.#trench.kill9();
    await this.#started.disposeAsync();
  }

  get #services(): Services {
    return { ...this.#pipeline.services, 'trench-api': this.#trench };
  }

  async #setWebhooks(state: 'active' | 'paused'): Promise<void> {
    const { urls, belongings } = this.#load;
    await setWebhooks({ urls, key: belongings.key }, belongings, state);
  }

  async #begin(): Promise<void> {
    if (this.#files.size === 0) this.#files = await openFiles(this.#services);
    this.#hostile = new Worker(new URL('./hostile-load.ts', import.meta.url), { workerData: this.#load });
    this.#ordinary = new Worker(new URL('./ordinary-load.ts', import.meta.url), { workerData: this.#ordinaryLoad });
    // The first responses compile and connect.
    await setTimeout(ALONE_MS / 2);
    await this.#takeOrdinary('take');
    if (this.#alone.size === 0) this.#alone = await this.#baseline();
    this.#held ??= await HeldMeter.start(() => this.#services);
  }

  /** Returns within how many milliseconds 99% of the ordinary tenant's requests end on a busy machine, by their kind. */
  async #baseline(): Promise<ReadonlyMap<string, number>> {
    const count = BUSY_THREADS * availableParallelism();
    const threads = Array.from({ length: count }, () => new Worker('for (;;);', { eval: true }));
    const found = new Map<string, readonly number[]>();
    try {
      await until('requests of each kind', async () => {
        await setTimeout(ALONE_MS / 2);
        const { durations } = await this.#takeOrdinary('take');
        for (const [kind, ms] of Object.entries(durations)) found.set(kind, [...(found.get(kind) ?? []), ...ms]);
        return (
          KINDS.every((kind) => found.has(kind)) &&
          [...found.values()].every(({ length }) => length >= ALONE_REQUESTS_MIN)
        );
      });
    } finally {
      await Promise.all(threads.map((thread) => thread.terminate()));
    }
    return new Map([...found].map(([kind, ms]) => [kind, p99(ms)]));
  }

  async #endLoads(): Promise<void> {
    await Promise.all([this.#hostile?.terminate(), this.#ordinary?.terminate()]);
  }

  /** What the ordinary tenant saw since the last call. It goes on after `take`, and not after `pause`. */
  async #takeOrdinary(message: 'pause' | 'take'): Promise<OrdinaryOutcome> {
    return await this.#ask<OrdinaryOutcome>(this.#ordinary, message);
  }

  async #ask<Reply>(worker: Worker | undefined, message: unknown): Promise<Reply> {
    if (!worker) throw new Error('the tenants have not begun');
    worker.postMessage(message);
    const [reply] = (await once(worker, 'message')) as [Reply];
    return reply;
  }

  #slowKinds({ durations }: OrdinaryOutcome): string[] {
    const slowdownMs = 4 * Math.max(0, p99(durations['control'] ?? []) - (this.#alone.get('control') ?? 0));
    return Object.entries(durations).flatMap(([kind, found]) => {
      const aloneMs = this.#alone.get(kind) ?? 0;
      const ms = p99(found);
      const leastMs = kind === 'stream' ? SLOW_STREAM_MS : SLOW_MS;
      if (kind === 'control' || ms <= Math.max(SLOWER_MAX * aloneMs, leastMs) + slowdownMs) return [];
      return [
        `99% of the other tenant's requests "${kind}" took up to ${ms.toFixed(0)} ms, and ${aloneMs.toFixed(0)} ms on a busy machine without hostile ones`,
      ];
    });
  }

  /** What is not as it was before the attack. */
  async #notIdle(): Promise<string[]> {
    return [
      ...(await notIdle(this.#services)),
      ...((await this.#held?.take()) ?? []),
      ...(await locksOf(this.#pipeline.keysFile)).map((path) => `the lock ${path} is held`),
    ];
  }

  async #idleFaults(): Promise<string[]> {
    let found: string[] = [];
    await until(
      'the services to be idle',
      async () => {
        found = await this.#notIdle().catch((error: Error) => [`no metrics: ${error.message}`]);
        return found.length === 0;
      },
      IDLE_MS_MAX,
    ).catch(() => undefined);
    return found.map((what) => `not idle ${IDLE_MS_MAX / 1_000} s after the last request: ${what}`);
  }
}

interface Places extends Required<ArenaOptions> {
  readonly clickhouseUrl: string;
  readonly dns: DnsServer;
}

/** As in the compose file and the chart, Kafka and ClickHouse have names, whose look-ups share the threads of the process. */
function pipelineOptions({ kafkaBrokers, name, clickhouseUrl, dns, env }: Places): PipelineOptions {
  const heap = (service: keyof typeof MEMORY) => ({
    NODE_OPTIONS: `--max-old-space-size=${MEMORY[service].heapMebibytes}`,
  });
  return {
    kafkaBrokers: kafkaBrokers.map((broker) => broker.replace('127.0.0.1', 'localhost')),
    clickhouseUrl: clickhouseUrl.replace('127.0.0.1', 'localhost'),
    ...{ name, database: SQL_DATABASE },
    env: { QUERY_TIMEOUT_MS: String(QUERY_TIMEOUT_MS), COUNT_TIMEOUT_MS: '1000' },
    envOf: {
      ...Object.fromEntries(SERVICE_NAMES.map((service) => [service, heap(service)])),
      'query-api': {
        ...{ ...heap('query-api'), ...SQL_ENV, ...WEBHOOKS_ACCOUNT, API_KEYS_CHANGEABLE: 'true' },
        ...{ WEBHOOK_ALLOW_NETWORKS: '127.0.0.1', WEBHOOK_DNS_SERVERS: dns.address },
        ...{ WEBHOOK_TIMEOUT_MS: String(WEBHOOK_TIMEOUT_MS), WEBHOOK_RETRY_MS_MAX: '1000' },
        ...env,
      },
    },
  };
}

async function startTrench({ services, keysFile }: Pipeline): Promise<Service> {
  const [port = 0] = await findFreePorts(1);
  const trench = startService('trench-api', port, {
    INGEST_URL: services['ingest-api'].url,
    QUERY_URL: services['query-api'].url,
    ...{ TRENCH_ADMIN_KEY: ADMIN_KEY, API_KEYS_FILE: keysFile },
    NODE_OPTIONS: `--max-old-space-size=${MEMORY['trench-api'].heapMebibytes}`,
  });
  await trench.ready();
  return trench;
}

function p99(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length * 0.99)] ?? 0;
}
