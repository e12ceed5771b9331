import { sleep } from '@sluice/shared/retry';
import { median } from './figures.ts';
import type { Bench } from './pipeline.ts';
import { PROCESS_NAMES } from './system.ts';

const DURATION_MS = { whole: 600_000, quick: 20_000 };
const SAMPLES = 60;
const EVENTS_PER_REQUEST = 20;

/**
 * Measures the memory of each process under half of capacity for ten minutes: the last third of the time over the one
 * before it. The first third is for caches that fill.
 *
 * @param capacity events a second
 */
export async function measureMemory(bench: Bench, capacity: number, quick: boolean): Promise<Record<string, string>> {
  const { system, loader, tally } = bench;
  const durationMs = quick ? DURATION_MS.quick : DURATION_MS.whole;
  const requestsPerSecond = capacity / 2 / EVENTS_PER_REQUEST;
  const load = { eventsPerRequest: EVENTS_PER_REQUEST, connections: 64, durationMs, requestsPerSecond };
  const loading = loader.run({ ...system.target, ...load, firstEvent: tally.events });
  const samples: Awaited<ReturnType<typeof system.memory>>[] = [];
  for (let sample = 0; sample < SAMPLES; sample += 1) {
    await sleep(durationMs / SAMPLES);
    samples.push(await system.memory());
  }
  tally.add(await loading);
  await system.storedAtLeast(tally.events);
  const lines = Object.fromEntries(
    PROCESS_NAMES.map((name) => {
      const sizes = samples.map((sample) => sample[name] / 1_048_576);
      const [middle, last] = [sizes.slice(SAMPLES / 3, (2 * SAMPLES) / 3), sizes.slice((2 * SAMPLES) / 3)].map(median);
      return [
        name,
        `${last?.toFixed(0)} MiB, ${((last ?? Number.NaN) / (middle ?? Number.NaN)).toFixed(2)} of the third before`,
      ];
    }),
  );
  console.log(
    `\nmemory under ${Math.round(capacity / 2)} events/s for ${(durationMs / 60_000).toFixed(1)} minutes (bar 0.9 to 1.1)`,
  );
  console.table(lines);
  return lines;
}
