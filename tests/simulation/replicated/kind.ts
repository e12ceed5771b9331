import { Random } from '../world/random.ts';
import type { Kind } from '../world/run-schedule.ts';
import { type Plan, scheduleOf } from '../writer/kind.ts';
import { Load } from '../writer/load.ts';
import { World } from '../writer/world.ts';
import { chooseErasureFaults, chooseLateFaults, chooseReplicatedFaults, REPLICATED_FAULTS } from './faults.ts';

/**
 * Writers of one group that store at replicas of the same tables, each at one of them. In the end each replica has everything once, but for
 * one that has died.
 */
export const REPLICATED: Kind = {
  name: 'replicated',
  create(seed, note) {
    const plan = planOf(seed);
    const world = new World({ ...plan, seed, onNote: note });
    const random = new Random(seed, 'load');
    return scheduleOf(world, plan, { faultTable: REPLICATED_FAULTS, random, load: new Load(world, random) });
  },
};

function planOf(seed: number): Plan {
  const random = new Random(seed, 'plan');
  if (random.isTrue(0.15)) return erasurePlanOf(random);
  // Drawn apart: the other seeds go on to mean the same schedules.
  if (new Random(seed, 'late').isTrue(0.1)) return latePlanOf(random);
  const durationMs = 1_500 + random.below(random.isTrue(0.9) ? 4_000 : 20_000);
  const count = 5 + random.below(30);
  return {
    partitions: 1 + random.below(3),
    nodes: 1,
    servers: [{ name: '', writers: 1 + random.below(3), replicas: 2 + random.below(2) }],
    isHasty: random.isTrue(0.8),
    durationMs,
    everyMs: 20 + random.below(200),
    erases: random.isTrue(0.4),
    faults: chooseReplicatedFaults(random, count, durationMs),
  };
}

/** Soon another writer takes over, while what was sent before is under way. */
function latePlanOf(random: Random): Plan {
  const durationMs = 3_000 + random.below(5_000);
  return {
    partitions: 1 + random.below(2),
    nodes: 1,
    servers: [{ name: '', writers: 2 + random.below(2), replicas: 2 + random.below(2) }],
    isHasty: true,
    durationMs,
    everyMs: 20 + random.below(100),
    erases: false,
    faults: chooseLateFaults(random, 2 + random.below(4), durationMs),
  };
}

/** Long enough for users to be erased while something is wrong. */
function erasurePlanOf(random: Random): Plan {
  const durationMs = 8_000 + random.below(8_000);
  return {
    partitions: 2 + random.below(2),
    nodes: 1,
    servers: [{ name: '', writers: 2 + random.below(2), replicas: 3 }],
    isHasty: true,
    durationMs,
    everyMs: 100 + random.below(300),
    erases: true,
    faults: chooseErasureFaults(random, 5 + random.below(20), durationMs),
  };
}
