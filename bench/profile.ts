import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { PROFILED, Profiler } from './cpu-profile.ts';
import { createTally, LOADS, ROUND_MS } from './figures.ts';
import { startLoader } from './load.ts';
import { startSystem } from './system.ts';
import { sampleThreads } from './thread-times.ts';

const FOLDER = join(import.meta.dirname, '..', '.bench', 'profiles');
const TOP_LINES = 30;
const SERVICES = ['ingest-api', 'writer'] as const;

/**
 * Profiles ingest-api and writer under each load, and ClickHouse's CPU by kind of thread. Prints where most of the time
 * goes, and leaves the profiles in `.bench/profiles`, for Chrome's developer tools.
 *
 * @param rounds how many seconds of load, times four, are profiled
 * @returns whether all accepted events are stored once
 */
export async function benchProfile(rounds: number): Promise<boolean> {
  await mkdir(FOLDER, { recursive: true });
  let sound = true;
  for (const load of LOADS) {
    await using system = await startSystem(PROFILED);
    const { services } = system.pipeline;
    const loader = await startLoader();
    const tally = createTally();

    async function run(durationMs: number): Promise<number> {
      const before = tally.events;
      tally.add(await loader.run({ ...system.target, ...load, durationMs, firstEvent: before }));
      await system.storedAtLeast(tally.events);
      return tally.events - before;
    }

    try {
      await run(ROUND_MS);
      const profilers = await Promise.all(SERVICES.map((name) => Profiler.connect(services[name])));
      const threads = sampleThreads(system.clickhousePid);
      for (const profiler of profilers) await profiler.start();
      const events = await run(rounds * ROUND_MS);
      console.log(`\n${load.eventsPerRequest} events a request, ${events} events`);
      for (const [index, name] of SERVICES.entries()) {
        const times = await profilers[index]?.stop(
          join(FOLDER, `${name}-${load.eventsPerRequest}-a-request.cpuprofile`),
        );
        print(name, times ?? new Map(), events);
      }
      print('ClickHouse, by the names of its threads', await threads.stop(), events);
    } finally {
      loader.stop();
    }
    sound = tally.verdict(await system.stored()) && sound;
  }
  return sound;
}

function print(title: string, us: ReadonlyMap<string, number>, events: number): void {
  const sum = [...us.values()].reduce((total, value) => total + value, 0);
  const lines = [...us].sort(([, one], [, other]) => other - one).slice(0, TOP_LINES);
  console.log(title);
  console.table(
    Object.fromEntries(
      [...lines, ['all', sum] as const].map(([name, value]) => [
        name,
        { 'CPU µs an event': (value / events).toFixed(2), share: `${((100 * value) / sum).toFixed(1)} %` },
      ]),
    ),
  );
}
