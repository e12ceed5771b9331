import cluster, { type Worker } from 'node:cluster';
import { once } from 'node:events';
import { getHeapStatistics } from 'node:v8';
import type { Logger } from '@sluice/shared/base/log';
import { type Component, runService } from '@sluice/shared/service/lifecycle';
import { AggregatorRegistry } from 'prom-client';
import type { IngestConfig } from '../config.ts';
import type { MetricsRequest, MetricsResponse, ReadyMessage, StopMessage } from './worker.ts';

/**
 * Runs `INGEST_WORKERS` processes that serve requests on one port, each on a core of its own, until this process is told
 * to stop. When one of them ends by itself, all of them stop and the service ends with an error: whatever restarts a
 * service then restarts it as a whole.
 */
export function runWorkers(config: IngestConfig, logger: Logger): void {
  const workers = new Workers(config, logger, (error) => service.fail(error));
  const service = runService({
    logger,
    components: [workers],
    // The workers stop within this time, or exit.
    shutdownTimeoutMs: config.SHUTDOWN_TIMEOUT_MS + 1_000,
    exitOnStdinEnd: config.EXIT_ON_STDIN_END,
  });
}

class Workers implements Component {
  readonly name = 'workers';
  readonly #config: IngestConfig;
  readonly #logger: Logger;
  readonly #fail: (error: Error) => void;
  readonly #workers: Worker[] = [];
  readonly #ready = new Set<Worker>();
  #stopping = false;

  constructor(config: IngestConfig, logger: Logger, fail: (error: Error) => void) {
    this.#config = config;
    this.#logger = logger;
    this.#fail = fail;
  }

  async start(): Promise<void> {
    const { INGEST_WORKERS } = this.#config;
    const heapMiB = Math.floor(getHeapStatistics().heap_size_limit / INGEST_WORKERS / 1_048_576);
    cluster.setupPrimary({ execArgv: [...process.execArgv, `--max-old-space-size=${heapMiB}`] });
    respondWithMetrics(this.#logger);
    for (let index = 0; index < INGEST_WORKERS; index += 1) this.#startWorker();
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    const running = this.#workers.filter((worker) => !worker.isDead());
    const ended = running.map((worker) => once(worker, 'exit'));
    for (const worker of running) if (worker.isConnected()) worker.send({ type: 'stop' } satisfies StopMessage);
    await Promise.all(ended);
  }

  #startWorker(): void {
    const worker = cluster.fork(workerEnvironment(this.#config));
    this.#workers.push(worker);
    worker.on('message', (message: ReadyMessage) => {
      if (message?.type === 'worker is ready') this.#noteReady(worker);
    });
    worker.on('exit', (code, signal) => {
      if (!this.#stopping) this.#fail(new Error(`worker ${worker.id} ended with ${signal ?? `exit code ${code}`}`));
    });
  }

  #noteReady(worker: Worker): void {
    this.#ready.add(worker);
    if (this.#ready.size < this.#workers.length) return;
    for (const each of this.#workers) each.send({ type: 'all workers are ready' } satisfies ReadyMessage);
  }
}

/** What is different in the environment of a worker from that of the primary process. */
export function workerEnvironment(config: Pick<IngestConfig, 'INGEST_WORKERS' | 'PENDING_BYTES_MAX'>) {
  return {
    INGEST_WORKERS: '1',
    PENDING_BYTES_MAX: String(Math.floor(config.PENDING_BYTES_MAX / config.INGEST_WORKERS)),
    // The primary process stops them.
    EXIT_ON_STDIN_END: 'false',
  };
}

/** Lets each worker respond with the metrics of all. */
function respondWithMetrics(logger: Logger): void {
  const aggregator = new AggregatorRegistry();
  cluster.on('message', async (worker, message: MetricsRequest) => {
    if (message?.type !== 'metrics of all workers') return;
    const response: MetricsResponse = { type: message.type, id: message.id, text: undefined };
    try {
      response.text = await aggregator.clusterMetrics();
    } catch (error) {
      logger.warn({ reason: (error as Error).message }, 'the metrics of the workers cannot be collected');
    }
    if (worker.isConnected()) worker.send(response);
  });
}
