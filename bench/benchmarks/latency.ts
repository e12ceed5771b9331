import { type Probe, probe } from '../measure/probes.ts';
import { measureHalfOfCapacity } from '../processes/steady-load.ts';
import { System } from '../processes/system.ts';
import { type Bar, type Benchmark, type Figure, figureOf, p99 } from '../report/benchmark.ts';

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

async function measure({ seconds }: { seconds: number }): Promise<readonly Figure[]> {
  await using system = await System.start();
  const half = await measureHalfOfCapacity(system);
  await system.engines.mergesSettled();
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
