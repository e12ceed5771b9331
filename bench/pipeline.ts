import { createTally, LOADS, ROUND_MS, spread } from './figures.ts';
import { startLoader } from './load.ts';
import { difference, startSystem } from './system.ts';

/**
 * Measures the whole pipeline, from the first request of a round until all its events are stored and visible.
 *
 * @returns whether all accepted events are stored once
 */
export async function benchPipeline(rounds: number): Promise<boolean> {
  await using system = await startSystem();
  const { pipeline } = system;
  const loader = await startLoader();
  try {
    const tally = createTally();
    let firstEvent = 0;
    for (const load of LOADS) {
      const rates: number[] = [];
      const cpu: Record<string, number>[] = [];
      for (let round = -1; round < rounds; round += 1) {
        const before = await system.cpuTimes();
        const start = performance.now();
        const url = pipeline.services['ingest-api'].url;
        const result = await loader.run({ url, key: pipeline.key, ...load, durationMs: ROUND_MS, firstEvent });
        firstEvent += result.events;
        tally.add(result);
        await system.storedAtLeast(tally.events);
        const seconds = (performance.now() - start) / 1_000;
        const used = difference(before, await system.cpuTimes());
        // Round -1 warms up.
        if (round < 0) continue;
        rates.push(result.events / seconds);
        const perEvent = Object.entries(used).map(([name, us]) => [name, us / result.events] as const);
        cpu.push(Object.fromEntries([...perEvent, ['together', perEvent.reduce((sum, [, us]) => sum + us, 0)]]));
      }
      console.log(`\n${load.eventsPerRequest} events a request: median (lowest to highest) of ${rounds} rounds`);
      const costs = Object.keys(cpu[0] ?? {}).map((name) => [
        `CPU µs an event, ${name}`,
        spread(
          cpu.map((round) => round[name] ?? Number.NaN),
          1,
        ),
      ]);
      console.table({ 'stored events/s': spread(rates), ...Object.fromEntries(costs) });
    }
    return tally.verdict(await system.stored());
  } finally {
    loader.stop();
  }
}
