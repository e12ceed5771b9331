import { Random } from '../world/random.ts';
import type { Kind } from '../world/run-schedule.ts';
import { type Plan, scheduleOf } from '../writer/kind.ts';
import { Load } from '../writer/load.ts';
import { World } from '../writer/world.ts';
import { chooseErasureFaults, chooseSharedFaults, SHARED_FAULTS } from './faults.ts';

/**
 * Writers of replicas that share the rows of tables behind one address, as in ClickHouse Cloud: each statement reaches any of them. In the end
 * everything is there once.
 */
export const SHARED: Kind = {
  name: 'shared',
  create(seed, note) {
    const plan = planOf(seed);
    const world = new World({ ...plan, seed, onNote: note });
    const random = new Random(seed, 'load');
    return scheduleOf(world, plan, { faultTable: SHARED_FAULTS, random, load: new Load(world, random, plan) });
  },
};

interface SharedPlan extends Plan {
  /** As {@link Load} takes it. */
  readonly isOfVisitors?: boolean;
}

function planOf(seed: number): SharedPlan {
  const random = new Random(seed, 'plan');
  if (random.isTrue(0.35)) return erasurePlanOf(random);
  const durationMs = 1_500 + random.below(random.isTrue(0.9) ? 4_000 : 20_000);
  const count = 5 + random.below(30);
  return {
    partitions: 1 + random.below(3),
    nodes: 1,
    servers: [{ name: '', writers: 1 + random.below(3), sharing: 2 + random.below(2) }],
    isHasty: random.isTrue(0.8),
    durationMs,
    everyMs: 20 + random.below(200),
    erases: random.isTrue(0.3),
    faults: chooseSharedFaults(random, count, durationMs),
  };
}

/**
 * Long enough for users and visitors to be erased while something is wrong. The deletion of a visitor waits for nothing but inserts, that of a
 * user for all that was accepted before: so where many visitors are deleted, commits are under way for longer than two delays of an erasure.
 */
function erasurePlanOf(random: Random): SharedPlan {
  const isOfVisitors = random.isTrue(0.45);
  const durationMs = 4_000 + random.below(6_000);
  const keeperMs = isOfVisitors ? 10_000 : 4_000;
  return {
    partitions: 2 + random.below(2),
    nodes: 1,
    servers: [{ name: '', writers: 2 + random.below(2), sharing: 2 + random.below(2), keeperMs }],
    isHasty: true,
    durationMs,
    everyMs: 50 + random.below(150),
    erases: true,
    isOfVisitors,
    faults: chooseErasureFaults(random, { isOfVisitors, count: 5 + random.below(15), untilMs: durationMs }),
  };
}
