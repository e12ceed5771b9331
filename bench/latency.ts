import { sleep } from '@sluice/shared/retry';
import { eventJson, subjectsOf } from './event.ts';
import type { Bench } from './pipeline.ts';

const PROBES = { whole: 60, quick: 15 };
const POLL_MS = 10;

/** An event is sent so often at least, in milliseconds, with as much again at random. */
const PROBE_INTERVAL_MS = 200;

const EVENTS_PER_REQUEST = 20;

/** In milliseconds: half of the probes took longer than `median`, one in a hundred than `p99`. */
interface Quantiles {
  readonly median: number;
  readonly p99: number;
}

/**
 * Measures how long single events take from the request to its response, and from there until `GET /events` returns them:
 * with nothing else to do, and at half of capacity.
 *
 * @param capacity events a second
 */
export async function measureLatency(bench: Bench, capacity: number, quick: boolean): Promise<Record<string, string>> {
  const { system, loader, tally } = bench;
  const probes = quick ? PROBES.quick : PROBES.whole;
  const idle = await probe(bench, probes);
  const durationMs = probes * 2.2 * PROBE_INTERVAL_MS;
  const requestsPerSecond = capacity / 2 / EVENTS_PER_REQUEST;
  const load = { eventsPerRequest: EVENTS_PER_REQUEST, connections: 64, durationMs, requestsPerSecond };
  // The numbers before belong to the probes.
  const loading = loader.run({ ...system.target, ...load, firstEvent: tally.events + probes });
  const busy = await probe(bench, probes);
  const result = await loading;
  tally.add(result);
  await system.storedAtLeast(tally.events);
  const lines = {
    'idle: acknowledged after ms (bar 10)': print(idle.acknowledged),
    'idle: visible after ms (bar 300)': print(idle.visible),
    'half of capacity: acknowledged after ms': print(busy.acknowledged),
    'half of capacity: visible after ms (bar p99 1000)': print(busy.visible),
  };
  console.log(
    `\nlatency of single events, median and p99 of ${probes}; half of capacity is ${Math.round(capacity / 2)} events/s`,
  );
  console.table(lines);
  return lines;
}

async function probe(
  { system, tally }: Bench,
  count: number,
): Promise<{ acknowledged: Quantiles; visible: Quantiles }> {
  const { pipeline } = system;
  const acknowledged: number[] = [];
  const visible: number[] = [];
  for (let index = 0; index < count; index += 1) {
    await sleep(PROBE_INTERVAL_MS * (1 + Math.random()));
    const number = tally.events;
    const { user, organization } = subjectsOf(number);
    const event = eventJson(number);
    const { uuid } = JSON.parse(event) as { uuid: string };
    const sentAt = performance.now();
    const body = `{"foreignUserGroupId":"${organization}","foreignUserId":"${user}","events":[${event}]}`;
    const { status } = await pipeline.submit(body);
    const acknowledgedAt = performance.now();
    const fault = status === 202 ? undefined : `a probe got ${status}`;
    const ms = acknowledgedAt - sentAt;
    tally.add({
      requests: 1,
      events: 1,
      seconds: ms / 1_000,
      latencyMs: { median: ms, p99: ms },
      numbersSum: String(number),
      fault,
    });
    acknowledged.push(ms);
    for (;;) {
      const { body: found } = await pipeline.get<{ results: unknown[] }>(`/events?uuid=${uuid}&limit=1&total=none`);
      if (found.results.length > 0) break;
      await sleep(POLL_MS);
    }
    visible.push(performance.now() - acknowledgedAt);
  }
  return { acknowledged: quantiles(acknowledged), visible: quantiles(visible) };
}

function quantiles(values: readonly number[]): Quantiles {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? Number.NaN;
  return { median: at(0.5), p99: at(0.99) };
}

function print({ median, p99 }: Quantiles): string {
  return `${median.toFixed(0)}, p99 ${p99.toFixed(0)}`;
}
