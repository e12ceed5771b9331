import { HEALTHY_MS } from '../clickhouse/simulated-clickhouse.ts';
import { beginFault, chooseFaults, type Fault } from '../world/faults.ts';
import { Random } from '../world/random.ts';
import type { Kind } from '../world/run-schedule.ts';
import { LOSING_FAULTS, WRITER_FAULTS } from './faults.ts';
import { Load } from './load.ts';
import { World } from './world.ts';

/** How often somebody looks for halted partitions, in milliseconds. */
const OPERATOR_MS = 3_000;

/** How long a schedule goes on when everything is stored, in milliseconds: deleted users are erased meanwhile. */
const ERASING_MS = 8_000;

/** After the last fault, everything has to be stored within this time, in milliseconds. */
const RECOVERY_MS = 600_000;

/** What happens in a schedule, besides the faults. All of it follows from the seed. */
interface Plan {
  readonly partitions: number;
  readonly nodes: number;
  readonly writers: number;
  readonly durationMs: number;
  /** How often the load sends something, in milliseconds. */
  readonly everyMs: number;
  readonly faults: readonly Fault[];
}

/** Writers under faults; then the faults end, and everything has to be stored. */
export const WRITER: Kind = {
  name: 'writer',
  create(seed, note) {
    const plan = planOf(seed);
    const world = new World({ ...plan, seed, onNote: note });
    return {
      world,
      faults: plan.faults,
      run: (faults) => runPlan(world, { ...plan, faults }, new Random(seed, 'load')),
      end() {
        for (const writer of world.writers) writer.kill();
      },
    };
  },
};

function planOf(seed: number): Plan {
  const random = new Random(seed, 'plan');
  const durationMs = 5_000 + random.below(30_000);
  const times = { count: random.below(100), untilMs: durationMs };
  // Records are lost seldom otherwise, and that is worth most of a schedule.
  const faults = random.isTrue(0.25)
    ? chooseFaults(random, LOSING_FAULTS, { ...times, favourite: 'cut off log' })
    : chooseFaults(random, WRITER_FAULTS, times);
  return {
    partitions: 1 + random.below(3),
    nodes: 1 + random.below(2),
    writers: 1 + random.below(3),
    durationMs,
    everyMs: 30 + random.below(300),
    faults,
  };
}

async function runPlan(world: World, plan: Plan, random: Random): Promise<void> {
  const { time, oracle } = world;
  const isWrong = () => oracle.violation !== undefined;
  for (const writer of world.writers) time.after(random.between(0, 2_000), () => writer.start());
  const load = new Load(world, random);
  for (let atMs = 0; atMs < plan.durationMs; atMs += plan.everyMs) time.after(atMs, () => load.act());
  for (const fault of plan.faults) time.after(fault.atMs, () => beginFault(world, LOSING_FAULTS, fault));
  await time.runUntil(plan.durationMs, isWrong);
  if (isWrong()) return;
  endFaults(world);
  const until = time.nowMs + RECOVERY_MS;
  for (let atMs = time.nowMs; atMs < until && !isWrong(); atMs += OPERATOR_MS) {
    if (oracle.isDone()) break;
    resumeHalted(world);
    await time.runUntil(atMs + OPERATOR_MS, isWrong);
  }
  await time.runUntil(time.nowMs + ERASING_MS, isWrong);
  if (!isWrong() && !oracle.isDone())
    oracle.report(`not everything is stored ${RECOVERY_MS / 1_000} s after the last fault`);
  if (!isWrong()) oracle.checkEnd();
}

function endFaults(world: World): void {
  const { network, clickhouse, kafka, writers } = world;
  world.note('there are no more faults from here on');
  network.mendAll();
  clickhouse.start();
  clickhouse.slownessMs = HEALTHY_MS;
  clickhouse.refusals = 0;
  kafka.unreadable.clear();
  for (const node of kafka.nodes) if (!node.isUp) kafka.start(node);
  for (const writer of writers) {
    writer.thaw();
    writer.start();
  }
}

/** An operator resumes each halted partition at the oldest message. Without a loss of records nothing may be halted. */
function resumeHalted({ clickhouse: { tables }, kafka, oracle }: World): void {
  for (const [name, halt] of tables.halts) {
    if (halt.isResumed) continue;
    if (!oracle.hasLost) oracle.report(`${name} is halted, and no record was lost: ${halt.detail}`);
    const log = kafka.log(halt.topic, halt.partition);
    const row = {
      topic: halt.topic,
      partition: halt.partition,
      nextOffset: log?.low ?? 0,
      fingerprint: '',
      leaderEpoch: -1,
    };
    tables.positions.set(name, row);
    tables.halts.set(name, { ...halt, isResumed: true });
  }
}
