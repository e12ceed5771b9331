import { sleep } from '@sluice/shared/retry';
import { eventJson, subjectsOf } from '../data/event.ts';
import { measureHalfOfCapacity } from '../processes/steady-load.ts';
import { System } from '../processes/system.ts';
import { type Bar, type Benchmark, type Figure, figureOf } from '../report/benchmark.ts';

const POLL_MS = 10;

/** So long after the last event was seen the next one is sent at least, in milliseconds, with as much again at random. */
const PROBE_INTERVAL_MS = 200;

export const LATENCY: Benchmark<{ seconds: number }> = {
  name: 'latency',
  title: 'The latency of an event',
  method:
    'Single events are sent at random times, one after the other: idle, and for as long while other connections send 20 events a ' +
    'request at half of the rate that the system could store. Each is timed from the request to its response, and from there until `GET /events` ' +
    'returns it. The load generator, the services and both engines share the cores.',
  size: { seconds: 60 },
  measure,
};

/** In milliseconds. */
interface Probe {
  readonly acknowledged: number;
  /** From the response until `GET /events` returned the event. */
  readonly visible: number;
}

async function measure({ seconds }: { seconds: number }): Promise<readonly Figure[]> {
  await using system = await System.start();
  const half = await measureHalfOfCapacity(system);
  await system.mergesSettled();
  const durationMs = seconds * 1_000;
  const idle = await probe(system, durationMs);
  // The probes take their numbers before the load takes its own.
  const probing = probe(system, durationMs);
  const loading = system.load(half.shape(durationMs));
  const [busy] = await Promise.all([probing, loading]);
  await system.expectExactlyOnce();
  return [
    ...figuresOf('idle', idle, { acknowledged: { atMost: 10 }, visible: { atMost: 300 } }),
    ...figuresOf('half of capacity', busy, { visibleP99: { atMost: 1_000 } }),
    figureOf('events beside the probes', 'half of capacity', '/s', [half.eventsPerSecond]),
  ];
}

async function probe(system: System, durationMs: number): Promise<readonly Probe[]> {
  const probes: Probe[] = [];
  let number = system.reserveNumbers(Math.ceil(durationMs / PROBE_INTERVAL_MS));
  for (const endAt = performance.now() + durationMs; performance.now() < endAt; number += 1) {
    await sleep(PROBE_INTERVAL_MS * (1 + Math.random()));
    probes.push(await probeOnce(system, number));
  }
  return probes;
}

async function probeOnce({ pipeline, tally }: System, number: number): Promise<Probe> {
  const { user, organization } = subjectsOf(number);
  const event = eventJson(number);
  const { uuid } = JSON.parse(event) as { uuid: string };
  const body = `{"foreignUserGroupId":"${organization}","foreignUserId":"${user}","events":[${event}]}`;
  const sentAt = performance.now();
  const { status } = await pipeline.submit(body);
  const acknowledgedAt = performance.now();
  tally.add({
    events: 1,
    numbersSum: String(number),
    fault: status === 202 ? undefined : `a probe got ${status}`,
  });
  for (;;) {
    const { body: found } = await pipeline.get<{ results: unknown[] }>(`/events?uuid=${uuid}&limit=1&total=none`);
    if (found.results.length > 0) break;
    await sleep(POLL_MS);
  }
  return { acknowledged: acknowledgedAt - sentAt, visible: performance.now() - acknowledgedAt };
}

interface Bars {
  readonly acknowledged?: Bar;
  readonly visible?: Bar;
  readonly visibleP99?: Bar;
}

function figuresOf(column: string, probes: readonly Probe[], bars: Bars): Figure[] {
  const acknowledged = probes.map((one) => one.acknowledged);
  const visible = probes.map((one) => one.visible);
  return [
    figureOf('probes', column, '', [probes.length]),
    figureOf('acknowledged after, median', column, 'ms', acknowledged, bars.acknowledged),
    figureOf('acknowledged after, p99', column, 'ms', [p99(acknowledged)]),
    figureOf('visible after, median', column, 'ms', visible, bars.visible),
    figureOf('visible after, p99', column, 'ms', [p99(visible)], bars.visibleP99),
  ];
}

function p99(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.ceil(values.length * 0.99) - 1] ?? Number.NaN;
}
