import type { IngestConfig } from '@sluice/ingest-api/config';
import { createIngest } from '@sluice/ingest-api/serve';
import type { ApiKey, KeyRing } from '@sluice/shared/keys/key-ring';
import { hashKey } from '@sluice/shared/keys/keys-file';
import { TokenBucket } from '@sluice/shared/keys/token-bucket';
import type { Component } from '@sluice/shared/service/lifecycle';
import { Registry } from 'prom-client';
import { ConnectionBroken } from '../world/network.ts';
import { SimulatedProcess } from '../world/simulated-process.ts';
import { createTraceLogger } from '../world/trace-logger.ts';
import type { IngestSide } from './ingest-side.ts';

/** A response may take so much longer than a request waits for Kafka, in milliseconds. */
const RESPONSE_MS_MAX = 500;

/** After how long the supervisor starts one again that has ended, in milliseconds. */
const RESTART_MS = 1_000;

export interface HttpRequest {
  readonly method: 'POST' | 'DELETE';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload?: string;
}

export interface HttpResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: string;
}

/** A process of ingest-api. */
interface Running {
  readonly process: SimulatedProcess;
  readonly app: ReturnType<typeof createIngest>['app'];
  readonly components: readonly Component[];
  readonly readiness: () => Promise<readonly string[]>;
  readonly registry: Registry;
  /** The requests that it has not answered. */
  readonly open: Set<Promise<unknown>>;
  isListening: boolean;
}

/** The place of an ingest-api in a deployment. Its HTTP server is called without a socket. */
export class IngestPlace {
  readonly #side: IngestSide;
  readonly name: string;
  readonly #config: IngestConfig;
  readonly #keys: KeyRing;
  #running: Running | undefined;
  #clockAheadMs = 0;
  /** How long it was frozen, in milliseconds. */
  #frozenMs = 0;
  #frozenAtMs: number | undefined;

  constructor(side: IngestSide, name: string, config: IngestConfig) {
    this.#side = side;
    this.name = name;
    this.#config = config;
    this.#keys = keyRing(side.keys);
  }

  start(): void {
    if (this.#running) return;
    const { time } = this.#side.world;
    const process = new SimulatedProcess(this.name);
    process.clockAheadMs = this.#clockAheadMs;
    const logger = createTraceLogger(
      (line) => this.#side.world.note(`${this.name} ${line}`),
      (level, message) => this.#side.oracle.checkLog(process, level, message),
    );
    const registry = new Registry();
    const random = this.#side.random;
    time.runAs(process, () => {
      const config = { ...this.#config, PRODUCE_LINGER_MS: random.next() < 0.5 ? 0 : 20 };
      const { app, components, readiness } = createIngest(config, { logger, registry, keys: this.#keys });
      app.addHook('onRequest', (request, _reply, done) => {
        // A socket's parser says so when the body has arrived.
        request.raw.complete = true;
        done();
      });
      const running: Running = {
        ...{ process, app, components, readiness, registry, open: new Set(), isListening: false },
      };
      this.#running = running;
      void this.#listen(running);
    });
  }

  async #listen(running: Running): Promise<void> {
    for (const component of running.components) await component.start();
    await running.app.ready();
    running.isListening = true;
  }

  /** Ends the process at once, wherever it is. */
  kill(): void {
    this.thaw();
    this.#running?.process.kill();
    this.#running = undefined;
    this.#side.world.network.breakServer(this.name);
  }

  /** Ends the process as a service ends: what it has begun is answered. A supervisor starts it again. */
  stop(): void {
    const running = this.#running;
    if (!running?.isListening) return;
    running.isListening = false;
    this.#side.world.time.runAs(running.process, () => void this.#stop(running));
  }

  async #stop(running: Running): Promise<void> {
    while (running.open.size > 0) await Promise.all(running.open);
    await running.app.close();
    for (const component of running.components.toReversed()) await component.stop();
    this.#side.world.note(`${this.name} has stopped`);
    if (this.#running !== running) return;
    this.kill();
    this.#side.world.time.after(RESTART_MS, () => this.start());
  }

  freeze(): void {
    if (!this.#running || this.#frozenAtMs !== undefined) return;
    this.#frozenAtMs = this.#side.world.time.nowMs;
    this.#running.process.freeze();
  }

  thaw(): void {
    if (this.#frozenAtMs === undefined) return;
    const { time } = this.#side.world;
    this.#frozenMs += time.nowMs - this.#frozenAtMs;
    this.#frozenAtMs = undefined;
    const process = this.#running?.process;
    process?.thaw((run) => time.after(0, run, process));
  }

  /** Somebody sets the clock of the machine. */
  setClock(aheadMs: number): void {
    this.#clockAheadMs = aheadMs;
    if (this.#running) this.#running.process.clockAheadMs = aheadMs;
  }

  /**
   * Serves a request; it has arrived whole.
   *
   * @throws {ConnectionBroken} when nobody listens
   */
  async serve(request: HttpRequest): Promise<HttpResponse> {
    const running = this.#running;
    if (!running?.isListening) throw new ConnectionBroken(false);
    const { time } = this.#side.world;
    const [startedAtMs, frozenMs] = [time.nowMs, this.#frozenMs];
    const answered = new Promise<HttpResponse>((resolve, reject) => {
      const inject = () =>
        running.app.inject({ ...request }).then(({ statusCode: status, headers, body }) => {
          resolve({ status, headers, body });
        }, reject);
      time.after(0, inject, running.process);
    });
    running.open.add(answered);
    const response = await answered.finally(() => running.open.delete(answered));
    const tookMs = time.nowMs - startedAtMs - (this.#frozenMs - frozenMs);
    if (tookMs > this.#config.PRODUCE_TIMEOUT_MS + RESPONSE_MS_MAX) {
      this.#side.world.report(`${this.name} has taken ${Math.floor(tookMs)} ms for ${request.method} ${request.url}`);
    }
    if (running.open.size === 0) await this.#checkMemory(running);
    return response;
  }

  /** Nothing is under way, so nothing may be reserved. */
  async #checkMemory({ registry }: Running): Promise<void> {
    const bytes = await readMetric(registry, 'sluice_ingest_reserved_bytes');
    if (bytes !== 0) this.#side.world.report(`${this.name} is idle and has reserved ${bytes} bytes`);
  }

  /** Checks what it says of itself once nothing is wrong any more and nothing is under way. */
  async checkEnd(): Promise<void> {
    const running = this.#running;
    if (!running) return;
    const { time, report } = this.#side.world;
    const missing = await new Promise<readonly string[]>((resolve) => {
      time.after(0, () => void running.readiness().then(resolve), running.process);
    });
    if (missing.length > 0) report.call(this.#side.world, `${this.name} is not ready: ${missing.join(', ')}`);
    // A request that its client has given up may arrive now.
    while (running.open.size > 0) await Promise.allSettled(running.open);
    await this.#checkMemory(running);
    for (const name of ['sluice_ingest_failing_partitions', 'sluice_ingest_leaderless_partitions']) {
      const value = await readMetric(running.registry, name);
      if (value !== 0) report.call(this.#side.world, `${this.name}: ${name} is ${value}`);
    }
  }
}

async function readMetric(registry: Registry, name: string): Promise<number> {
  const metric = await registry.getSingleMetric(name)?.get();
  return metric?.values[0]?.value ?? 0;
}

/** @param keys the workspaces, by key */
function keyRing(keys: ReadonlyMap<string, string>): KeyRing {
  const found = new Map<string, ApiKey>();
  for (const [key, workspace] of keys) {
    const entry = { id: key, hash: hashKey(key), workspace, scopes: ['ingest' as const, 'delete' as const] };
    found.set(key, { ...entry, bucket: new TokenBucket() });
  }
  return { name: 'API keys', loaded: true, async start() {}, async stop() {}, find: (key) => found.get(key) };
}
