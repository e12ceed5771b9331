import type { LoadShape } from './load.ts';
import type { System } from './system.ts';

const SHAPE = { eventsPerRequest: 20, connections: 64 };
const CAPACITY_MS = 4_000;

/** Half of what a system can take, at an even rate. */
export interface HalfOfCapacity {
  readonly eventsPerSecond: number;
  shape(durationMs: number): LoadShape;
}

/** Measures how many events the system stores in a second with 20 a request, after as long a warm-up. */
export async function measureHalfOfCapacity(system: System): Promise<HalfOfCapacity> {
  await system.measureThroughput({ ...SHAPE, durationMs: CAPACITY_MS });
  const eventsPerSecond = (await system.measureThroughput({ ...SHAPE, durationMs: CAPACITY_MS })) / 2;
  const requestsPerSecond = eventsPerSecond / SHAPE.eventsPerRequest;
  return { eventsPerSecond, shape: (durationMs) => ({ ...SHAPE, durationMs, requestsPerSecond }) };
}
