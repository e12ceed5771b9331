import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { PROFILED, Profiler } from '../measure/cpu-profile.ts';
import { ThreadTimes } from '../measure/thread-times.ts';
import type { LoadShape } from '../processes/load.ts';
import { System } from '../processes/system.ts';

const FOLDER = join(import.meta.dirname, '..', '..', '.bench', 'profiles');
const TOP_LINES = 30;
const SERVICES = ['ingest-api', 'writer'] as const;
const WARM_UP_MS = 4_000;

const LOADS = [
  { eventsPerRequest: 1, connections: 256 },
  { eventsPerRequest: 20, connections: 64 },
] as const;

/**
 * Profiles ingest-api and writer under each load, and ClickHouse's CPU by kind of thread. Prints where most of the time
 * goes, and leaves the profiles in `.bench/profiles`, for Chrome's developer tools.
 *
 * @param seconds how long each load lasts
 * @throws {VoidRun} when something was lost or refused
 */
export async function profile(seconds: number): Promise<void> {
  await mkdir(FOLDER, { recursive: true });
  for (const load of LOADS) await profileUnder(load, seconds);
}

async function profileUnder(load: Omit<LoadShape, 'durationMs'>, seconds: number): Promise<void> {
  await using system = await System.start({ env: PROFILED });
  await system.load({ ...load, durationMs: WARM_UP_MS });
  await system.allStored();
  const { services } = system.pipeline;
  const profilers = await Promise.all(SERVICES.map((name) => Profiler.connect(services[name])));
  const threads = new ThreadTimes(system.engines.pidOf('ClickHouse'));
  for (const profiler of profilers) await profiler.start();
  const { events } = await system.load({ ...load, durationMs: seconds * 1_000 });
  await system.allStored();
  console.log(`\n${load.eventsPerRequest} events a request, ${events} events`);
  for (const [index, name] of SERVICES.entries()) {
    const file = join(FOLDER, `${name}-${load.eventsPerRequest}-a-request.cpuprofile`);
    print(name, (await profilers[index]?.stop(file)) ?? new Map(), events);
  }
  print('ClickHouse, by the names of its threads', await threads.stop(), events);
  await system.expectExactlyOnce();
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
