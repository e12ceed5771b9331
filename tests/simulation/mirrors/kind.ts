import { Random } from '../world/random.ts';
import type { Kind } from '../world/run-schedule.ts';
import { chooseWriterFaults } from '../writer/faults.ts';
import { hasteOf, type Plan, scheduleOf } from '../writer/kind.ts';
import type { ServerOptions } from '../writer/server.ts';
import { World } from '../writer/world.ts';
import { DisorderlyLoad } from './disorderly-load.ts';
import { chooseMirrorsKinds, MIRRORS_FAULTS } from './faults.ts';
import { mendMirrors } from './mend.ts';

/** Servers that are fed from one log, each by writers and a group of its own, under faults: in the end all are equal. */
export const MIRRORS: Kind = kindOf('mirrors', (random) => ({
  servers: (random.isTrue(0.8) ? ['a1', 'a2'] : ['a1', 'a2', 'a3']).map((name) => serverOf(random, name)),
  partitions: 1 + random.below(3),
}));

/** Servers of two ranges of partitions, with mirrors: each event is on those of one range, and these are equal. */
export const RANGES: Kind = kindOf('ranges', (random) => {
  const partitions = 2 + random.below(3);
  const split = 1 + random.below(partitions - 1);
  const ofRange = (names: readonly string[], first: number, last: number) =>
    names.map((name) => ({ ...serverOf(random, name), range: { first, last } }));
  return {
    servers: [
      ...ofRange(random.isTrue(0.8) ? ['a1', 'a2'] : ['a1'], 0, split - 1),
      ...ofRange(random.isTrue(0.5) ? ['b1', 'b2'] : ['b1'], split, partitions - 1),
    ],
    partitions,
  };
});

function kindOf(name: string, serversOf: (random: Random) => Pick<Plan, 'servers' | 'partitions'>): Kind {
  return {
    name,
    create(seed, note) {
      const plan = planOf(seed, serversOf);
      const world = new World({ ...plan, seed, onNote: note });
      const random = new Random(seed, 'load');
      const load = new DisorderlyLoad(world, random);
      const operate = () => mendMirrors(world, new Random(seed, 'mend'));
      return scheduleOf(world, plan, { faultTable: MIRRORS_FAULTS, random, load, operate });
    },
  };
}

function planOf(seed: number, serversOf: (random: Random) => Pick<Plan, 'servers' | 'partitions'>): Plan {
  const random = new Random(seed, 'plan');
  // Many short schedules find more than few long ones.
  const durationMs = random.isTrue(0.9) ? 1_500 + random.below(3_000) : 5_000 + random.below(15_000);
  const count = 5 + random.below(40);
  return {
    ...serversOf(random),
    nodes: 1 + random.below(2),
    isHasty: random.isTrue(0.8),
    durationMs,
    // A slow server with little memory takes long for each message.
    everyMs: Math.max(20 + random.below(200), durationMs / 100),
    ...hasteOf(seed, random.isTrue(0.3)),
    faults: chooseWriterFaults(random, { kinds: chooseMirrorsKinds(random), count, untilMs: durationMs }),
  };
}

/** Servers of different speeds get batches of different sizes. */
function serverOf(random: Random, name: string): ServerOptions {
  return { name, writers: 1 + random.below(2), healthyMs: random.pick([10, 20, 40, 80]) };
}
