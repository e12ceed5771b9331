import { createHash } from 'node:crypto';
import { HEALTHY_MS } from '../clickhouse/simulated-clickhouse.ts';
import { installBrokers } from '../kafka/install-brokers.ts';
import { Random } from '../world/random.ts';
import { beginFault, chooseFaults, type Fault } from './faults.ts';
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

export interface Outcome {
  /** What is wrong, if anything. */
  readonly violation: string | undefined;
  readonly faults: readonly Fault[];
  /** The same for each run of a seed with these faults. */
  readonly digest: string;
  /** How many things have happened. */
  readonly happened: number;
  /** In milliseconds. */
  readonly virtualMs: number;
}

/**
 * Runs writers in a simulated world under faults; then the faults end, and everything has to be stored.
 *
 * @param faults those that happen instead of the seed's own, to find out which of them are needed
 * @param onNote called with each line of the trace
 */
export async function runSchedule(
  seed: number,
  faults?: readonly Fault[],
  onNote?: (line: string) => void,
): Promise<Outcome> {
  const plan = planOf(seed);
  const hash = createHash('sha256');
  const note = (line: string) => {
    hash.update(`${line}\n`);
    onNote?.(line);
  };
  const world = new World({ ...plan, seed, onNote: note });
  const uninstallTime = world.time.install();
  const uninstallBrokers = installBrokers(world.kafka);
  const onUnhandled = (error: unknown) => world.oracle.report(`nobody handles ${(error as Error).stack ?? error}`);
  process.on('unhandledRejection', onUnhandled);
  process.on('uncaughtException', onUnhandled);
  try {
    await runPlan(world, { ...plan, faults: faults ?? plan.faults }, new Random(seed, 'load'));
  } finally {
    process.off('unhandledRejection', onUnhandled);
    process.off('uncaughtException', onUnhandled);
    uninstallBrokers();
    uninstallTime();
    for (const writer of world.writers) writer.kill();
  }
  return {
    violation: world.oracle.violation,
    faults: faults ?? plan.faults,
    digest: hash.digest('hex').slice(0, 16),
    happened: world.time.happened,
    virtualMs: world.time.nowMs,
  };
}

function planOf(seed: number): Plan {
  const random = new Random(seed, 'plan');
  const durationMs = 5_000 + random.below(30_000);
  const count = random.below(100);
  return {
    partitions: 1 + random.below(3),
    nodes: 1 + random.below(2),
    writers: 1 + random.below(3),
    durationMs,
    everyMs: 30 + random.below(300),
    faults: chooseFaults(random, count, durationMs, random.isTrue(0.25)),
  };
}

async function runPlan(world: World, plan: Plan, random: Random): Promise<void> {
  const { time, oracle } = world;
  const isWrong = () => oracle.violation !== undefined;
  for (const writer of world.writers) time.after(random.between(0, 2_000), () => writer.start());
  const load = new Load(world, random);
  for (let atMs = 0; atMs < plan.durationMs; atMs += plan.everyMs) time.after(atMs, () => load.act());
  for (const fault of plan.faults) time.after(fault.atMs, () => beginFault(world, fault));
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
