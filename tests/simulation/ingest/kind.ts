import { chooseFaults, chooseKinds, type Fault, scheduleFault } from '../world/faults.ts';
import { Random } from '../world/random.ts';
import type { Kind } from '../world/run-schedule.ts';
import { INGEST_FAULTS, LOSING_FAULTS, REQUESTS_OF_INGEST } from './faults.ts';
import type { IngestPlan } from './ingest-side.ts';
import { IngestWorld } from './world.ts';

/** After the last fault, everything has to be answered and accepted within this time, in milliseconds. */
const RECOVERY_MS = 120_000;

interface Plan extends IngestPlan {
  readonly nodes: number;
  readonly isNew: boolean;
  readonly durationMs: number;
  readonly faults: readonly Fault[];
}

/** Clients and ingest-apis under faults: what is accepted is in Kafka, and nothing else. */
export const INGEST: Kind = {
  name: 'ingest',
  create(seed, note) {
    const plan = planOf(seed);
    const world = new IngestWorld({ ...plan, onNote: note });
    return {
      world,
      faults: plan.faults,
      run: (faults) => run(world, { ...plan, faults }),
      end: () => world.side.kill(),
    };
  },
};

function planOf(seed: number): Plan {
  const random = new Random(seed, 'plan');
  // Many short schedules find more than few long ones.
  const durationMs = random.isTrue(0.8) ? 2_000 + random.below(4_000) : 5_000 + random.below(20_000);
  const kinds = chooseKinds(random, INGEST_FAULTS, 4);
  if (random.isTrue(0.15)) kinds.push(...chooseKinds(random, LOSING_FAULTS, 1));
  const faults = chooseFaults(random, {
    ...{ kinds, requests: REQUESTS_OF_INGEST, untilMs: durationMs },
    count: 3 + random.below(30),
  });
  return { seed, nodes: 1 + random.below(3), isNew: random.isTrue(0.2), durationMs, faults, ...ingestPlan(random) };
}

/** Chooses how many of what there are. */
export function ingestPlan(random: Random): Omit<IngestPlan, 'seed'> {
  const isLarge = random.isTrue(0.1);
  return {
    partitions: 1 + random.below(3),
    ingests: 1 + random.below(2),
    clients: 1 + random.below(6),
    produceTimeoutMs: random.pick([1_000, 3_000, 10_000]),
    eventBytesMax: isLarge ? 200_000 : 1_000,
    batchBytesMax: !isLarge && random.isTrue(0.3) ? 12_000 + random.below(20_000) : undefined,
  };
}

async function run(world: IngestWorld, { durationMs, faults }: Plan): Promise<void> {
  const { time, side, network, kafka } = world;
  const isWrong = () => world.violation !== undefined;
  for (const place of side.ingests) time.after(side.random.between(0, 500), () => place.start());
  for (const client of side.clients) client.start(durationMs);
  for (const fault of faults) scheduleFault(world, { ...INGEST_FAULTS, ...LOSING_FAULTS }, fault);
  await time.runUntil(durationMs, isWrong);
  if (isWrong()) return;
  world.note('there are no more faults from here on');
  network.mendAll();
  kafka.unreadable.clear();
  for (const log of kafka.logs) log.replicas = 'in sync';
  for (const node of kafka.nodes) if (!node.isUp) kafka.start(node);
  side.mend();
  await time.runUntil(time.nowMs + RECOVERY_MS, () => isWrong() || side.isDone);
  if (!isWrong()) await side.checkEnd(RECOVERY_MS);
}
