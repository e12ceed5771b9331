// Sends submissions as fast as the server responds. load.ts starts this process and tells it what to send.

import { gzipSync } from 'node:zlib';
import { sleep } from '@sluice/shared/base/retry';
import { Pool } from 'undici';
import { FORMS } from '../data/forms.ts';
import type { LoadOrder, LoadResult, LoadSpec } from './load.ts';

/** How long a client waits for a response that it may ask for again, and until it does, in milliseconds. */
const PATIENCE_MS = 15_000;
const REPEAT_MS = 200;

/** How long a request may go without an acknowledgement, in milliseconds: then the load has a fault. */
const REPEATS_MS = 180_000;

class Load {
  readonly #spec: LoadSpec;
  readonly #pool: Pool;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #latenciesMs: number[] = [];
  readonly #faults: string[] = [];
  readonly #startedAt = performance.now();
  #next: number;
  #numbersSum = 0n;
  #slots = 0;
  #isStopped = false;

  constructor(spec: LoadSpec) {
    this.#spec = spec;
    this.#pool = new Pool(spec.url, {
      connections: spec.connections,
      pipelining: 1,
      ...(spec.repeats && { headersTimeout: PATIENCE_MS }),
    });
    this.#headers = {
      authorization: `Bearer ${spec.key}`,
      'content-type': 'application/json',
      ...(spec.gzip && { 'content-encoding': 'gzip' }),
    };
    this.#next = spec.firstEvent;
  }

  /** Ends the load when the requests on their way have got their responses. */
  stop(): void {
    this.#isStopped = true;
  }

  async run(): Promise<LoadResult> {
    const connections = Array.from({ length: this.#spec.connections }, () => this.#connect());
    await Promise.all(connections);
    const seconds = (performance.now() - this.#startedAt) / 1_000;
    await this.#pool.close();
    const sorted = this.#latenciesMs.toSorted((a, b) => a - b);
    const quantile = (share: number) => sorted[Math.floor(sorted.length * share)] ?? Number.NaN;
    return {
      requests: sorted.length,
      events: sorted.length * this.#spec.eventsPerRequest,
      seconds,
      latencyMs: { median: quantile(0.5), p99: quantile(0.99) },
      numbersSum: String(this.#numbersSum),
      fault: this.#faults[0],
    };
  }

  /** Sends one request after the other until the time is over, and waits for the last response. */
  async #connect(): Promise<void> {
    const { durationMs, requestsPerSecond, eventsPerRequest } = this.#spec;
    const isOver = () =>
      this.#isStopped || performance.now() - this.#startedAt >= durationMs || this.#faults.length > 0;
    while (!isOver()) {
      const dueAt = requestsPerSecond === undefined ? performance.now() : await this.#nextSlot(requestsPerSecond);
      const first = this.#next;
      this.#next += eventsPerRequest;
      await this.#send(first, first + eventsPerRequest - 1, dueAt);
    }
  }

  /** Waits for the next of the times at which requests are due, and returns it. */
  async #nextSlot(perSecond: number): Promise<number> {
    const at = this.#startedAt + (this.#slots / perSecond) * 1_000;
    this.#slots += 1;
    const ms = at - performance.now();
    if (ms > 0) await sleep(ms);
    return at;
  }

  /** Sends the events of these numbers in one request, again and again where the load repeats. */
  async #send(first: number, last: number, dueAt: number): Promise<void> {
    const { form = 'submissions', gzip, key, repeats } = this.#spec;
    const { bodyOf, hasNumbers } = FORMS[form];
    const text = bodyOf(first, last, key);
    const body = gzip ? gzipSync(text, { level: 1 }) : text;
    let fault = await this.#attempt(body);
    for (const endAt = performance.now() + REPEATS_MS; repeats && fault !== undefined && performance.now() < endAt; ) {
      await sleep(REPEAT_MS);
      fault = await this.#attempt(body);
    }
    if (fault !== undefined) this.#faults.push(fault);
    this.#latenciesMs.push(performance.now() - dueAt);
    if (hasNumbers) this.#numbersSum += (BigInt(first + last) * BigInt(last - first + 1)) / 2n;
  }

  /** Returns what was wrong with the response. */
  async #attempt(body: string | Buffer): Promise<string | undefined> {
    const { path, status } = FORMS[this.#spec.form ?? 'submissions'];
    try {
      const response = await this.#pool.request({ method: 'POST', path, headers: this.#headers, body });
      if (response.statusCode !== status) return `${response.statusCode} ${await response.body.text()}`;
      await response.body.dump();
      return undefined;
    } catch (error) {
      return `no response: ${(error as Error).message}`;
    }
  }
}

let load: Load | undefined;
process.on('disconnect', () => process.exit());
process.on('message', (order: LoadOrder) => {
  if (order === 'stop') return load?.stop();
  load = new Load(order);
  void load.run().then((result) => process.send?.(result));
});
process.send?.('ready');
