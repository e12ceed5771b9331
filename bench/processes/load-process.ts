// Sends submissions as fast as the server responds. load.ts starts this process and tells it what to send.

import { gzipSync } from 'node:zlib';
import { sleep } from '@sluice/shared/base/retry';
import { Pool } from 'undici';
import { callJson, eventJson, posthogJson, subjectsOf } from '../data/event.ts';
import type { LoadForm, LoadResult, LoadSpec } from './load.ts';

process.on('disconnect', () => process.exit());
process.on('message', (spec: LoadSpec) => void new Load(spec).run().then((result) => process.send?.(result)));
process.send?.('ready');

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

  constructor(spec: LoadSpec) {
    this.#spec = spec;
    this.#pool = new Pool(spec.url, { connections: spec.connections, pipelining: 1 });
    this.#headers = {
      authorization: `Bearer ${spec.key}`,
      'content-type': 'application/json',
      ...(spec.gzip && { 'content-encoding': 'gzip' }),
    };
    this.#next = spec.firstEvent;
  }

  async run(): Promise<LoadResult> {
    const connections = Array.from({ length: this.#spec.connections }, () =>
      this.#connect().catch((error: Error) => void this.#faults.push(`no response: ${error.message}`)),
    );
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
    while (performance.now() - this.#startedAt < durationMs && this.#faults.length === 0) {
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

  /** Sends the events of these numbers in one request. */
  async #send(first: number, last: number, dueAt: number): Promise<void> {
    const { form = 'submissions', gzip, key } = this.#spec;
    const { path, status, bodyOf, hasNumbers } = FORMS[form];
    const body = bodyOf(first, last, key);
    const response = await this.#pool.request({
      method: 'POST',
      path,
      headers: this.#headers,
      body: gzip ? gzipSync(body, { level: 1 }) : body,
    });
    if (response.statusCode === status) await response.body.dump();
    else this.#faults.push(`${response.statusCode} ${await response.body.text()}`);
    this.#latenciesMs.push(performance.now() - dueAt);
    if (hasNumbers) this.#numbersSum += (BigInt(first + last) * BigInt(last - first + 1)) / 2n;
  }
}

interface Form {
  readonly path: string;
  /** The HTTP status of the response to what was accepted. */
  readonly status: number;
  readonly bodyOf: (first: number, last: number, key: string) => string;
  /** Whether the uuids of the stored events have the numbers of the events. */
  readonly hasNumbers: boolean;
}

const FORMS: Readonly<Record<LoadForm, Form>> = {
  submissions: { path: '/v1/public/userGroups', status: 202, bodyOf: submissionBody, hasNumbers: true },
  calls: { path: '/v1/batch', status: 200, bodyOf: callsBody, hasNumbers: false },
  posthog: { path: '/batch/', status: 200, bodyOf: posthogBody, hasNumbers: true },
};

function submissionBody(first: number, last: number): string {
  const { user, organization } = subjectsOf(first);
  const events = listOf(eventJson, first, last);
  return `{"foreignUserGroupId":"${organization}","foreignUserId":"${user}","events":[${events}]}`;
}

function callsBody(first: number, last: number): string {
  return `{"batch":[${listOf(callJson, first, last)}],"sentAt":"2026-03-01T12:00:00.000Z"}`;
}

function posthogBody(first: number, last: number, key: string): string {
  return `{"api_key":"${key}","batch":[${listOf(posthogJson, first, last)}],"sent_at":"2026-03-01T12:00:00.000Z"}`;
}

function listOf(json: (number: number) => string, first: number, last: number): string {
  let text = json(first);
  for (let number = first + 1; number <= last; number += 1) text += `,${json(number)}`;
  return text;
}
