// Sends submissions as fast as the server responds. load.ts starts this process and tells it what to send.

import { gzipSync } from 'node:zlib';
import { sleep } from '@sluice/shared/retry';
import { Pool } from 'undici';
import { callJson, eventJson, subjectsOf } from '../data/event.ts';
import type { LoadResult, LoadSpec } from './load.ts';

process.on('disconnect', () => process.exit());
process.on('message', (spec: LoadSpec) => void run(spec).then((result) => process.send?.(result)));
process.send?.('ready');

/** Each connection sends one request after the other until the time is over, and waits for the last response. */
async function run(spec: LoadSpec): Promise<LoadResult> {
  const { url, key, eventsPerRequest, connections, durationMs, firstEvent, gzip, calls, requestsPerSecond } = spec;
  const pool = new Pool(url, { connections, pipelining: 1 });
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    ...(gzip && { 'content-encoding': 'gzip' }),
  };
  const latenciesMs: number[] = [];
  const faults: string[] = [];
  let next = firstEvent;
  let numbersSum = 0n;
  let slots = 0;
  const start = performance.now();

  async function sendOne(): Promise<void> {
    const first = next;
    next += eventsPerRequest;
    const json = calls ? callJson : eventJson;
    let events = json(first);
    for (let number = first + 1; number < next; number += 1) events += `,${json(number)}`;
    const { user, organization } = subjectsOf(first);
    const body = calls
      ? `{"batch":[${events}],"sentAt":"2026-03-01T12:00:00.000Z"}`
      : `{"foreignUserGroupId":"${organization}","foreignUserId":"${user}","events":[${events}]}`;
    await send(gzip ? gzipSync(body, { level: 1 }) : body, first, next - 1);
  }

  async function send(body: string | Buffer, first: number, last: number): Promise<void> {
    const sentAt = performance.now();
    const response = await pool.request({
      method: 'POST',
      path: calls ? '/v1/batch' : '/v1/public/userGroups',
      headers,
      body,
    });
    if (response.statusCode !== (calls ? 200 : 202))
      faults.push(`${response.statusCode} ${await response.body.text()}`);
    else await response.body.dump();
    latenciesMs.push(performance.now() - sentAt);
    if (!calls) numbersSum += (BigInt(first + last) * BigInt(last - first + 1)) / 2n;
  }

  async function connection(): Promise<void> {
    while (performance.now() - start < durationMs && faults.length === 0) {
      if (requestsPerSecond !== undefined) await nextSlot(requestsPerSecond);
      await sendOne();
    }
  }

  /** Waits for the next of the times at which requests are due. */
  async function nextSlot(perSecond: number): Promise<void> {
    const at = start + (slots / perSecond) * 1_000;
    slots += 1;
    const ms = at - performance.now();
    if (ms > 0) await sleep(ms);
  }

  await Promise.all(
    Array.from({ length: connections }, () =>
      connection().catch((error: Error) => void faults.push(`no response: ${error.message}`)),
    ),
  );
  const seconds = (performance.now() - start) / 1_000;
  await pool.close();
  latenciesMs.sort((a, b) => a - b);
  const quantile = (share: number) => latenciesMs[Math.floor(latenciesMs.length * share)] ?? Number.NaN;
  return {
    requests: latenciesMs.length,
    events: latenciesMs.length * eventsPerRequest,
    seconds,
    latencyMs: { median: quantile(0.5), p99: quantile(0.99) },
    numbersSum: String(numbersSum),
    fault: faults[0],
  };
}
