import { type Fault, type FaultTable, scheduleFault } from '../world/faults.ts';
import { Random } from '../world/random.ts';
import type { Kind, Schedule } from '../world/run-schedule.ts';
import { checkEqual } from './equal-servers.ts';
import { chooseWriterFaults, chooseWriterKinds, WRITER_FAULTS } from './faults.ts';
import { Load } from './load.ts';
import type { Server, ServerOptions } from './server.ts';
import type { Haste } from './simulated-writer.ts';
import { World } from './world.ts';

/** How often it is looked whether everything is stored, in milliseconds. */
const LOOK_MS = 200;

/** An operator resumes what has been halted for so long, in milliseconds: its writer has seen that by then. */
const HALTED_MS = 2_000;

/** After the last fault, everything has to be stored within this time, in milliseconds. */
const RECOVERY_MS = 200_000;

/** After that, deleted users have to be erased within this time, in milliseconds. */
const ERASING_MS = 100_000;

/** Then all events have to have the columns that were declared last within this time, in milliseconds. */
const FILLING_MS = 100_000;

/** What happens in a schedule. All of it follows from the seed. */
export interface Plan extends Haste {
  readonly partitions: number;
  readonly nodes: number;
  readonly servers: readonly ServerOptions[];
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
    const random = new Random(seed, 'load');
    return scheduleOf(world, plan, { faultTable: WRITER_FAULTS, random, load: new Load(world, random) });
  },
};

function planOf(seed: number): Plan {
  const random = new Random(seed, 'plan');
  // Many short schedules find more than few long ones.
  const durationMs = random.isTrue(0.9) ? 1_500 + random.below(3_000) : 5_000 + random.below(20_000);
  const count = 5 + random.below(40);
  return {
    partitions: 1 + random.below(3),
    nodes: 1 + random.below(2),
    servers: [{ name: '', writers: 1 + random.below(3) }],
    isHasty: random.isTrue(0.8),
    durationMs,
    everyMs: 20 + random.below(200),
    ...hasteOf(seed, random.isTrue(0.3)),
    faults: chooseWriterFaults(random, {
      ...{ kinds: chooseWriterKinds(random, random.isTrue(0.35)), count, untilMs: durationMs },
    }),
  };
}

/** Returns how soon much passes. What was drawn before goes on to mean the same schedule. */
export function hasteOf(seed: number, erases: boolean): Pick<Haste, 'erases' | 'fills'> {
  return { erases, fills: erases && new Random(seed, 'fills').isTrue(0.5) };
}

/** What happens to writers besides their plan. */
interface Happenings {
  readonly faultTable: FaultTable<World>;
  readonly random: Random;
  readonly load: Pick<Load, 'act' | 'sendToAll'>;
  /** What an operator does in the end, once everything is stored and compared. */
  readonly operate?: () => Promise<void>;
}

/** Returns a schedule in which a load is sent to Kafka, and writers store it. */
export function scheduleOf(world: World, plan: Plan, happenings: Happenings): Schedule {
  return {
    world,
    faults: plan.faults,
    run: (faults) => runPlan(world, { ...plan, faults }, happenings),
    end() {
      for (const writer of world.writers) writer.kill();
    },
  };
}

async function runPlan(world: World, plan: Plan, { faultTable, random, load, operate }: Happenings): Promise<void> {
  const { time } = world;
  const isWrong = () => world.violation !== undefined;
  for (const writer of world.writers) time.after(random.between(0, 400), () => writer.start());
  for (let atMs = 0; atMs < plan.durationMs; atMs += plan.everyMs) time.after(atMs, () => load.act());
  if (plan.fills) world.declarations.start(plan.durationMs);
  for (const fault of plan.faults) scheduleFault(world, faultTable, fault);
  await time.runUntil(plan.durationMs, isWrong);
  if (isWrong()) return;
  endFaults(world);
  await recover(world);
  if (world.sent.hasLost && !isWrong()) {
    // A writer that runs notices what its log has lost with the next message after those that it has stored.
    load.sendToAll();
  }
  await settle(world, plan);
  if (!isWrong()) await operate?.();
}

/** Lets time pass until everything is stored and each writer is ready. */
export async function recover(world: World): Promise<void> {
  const isReady = readiness(world);
  const operators = world.servers.map((server) => operator(world, server));
  const everywhere = () => world.servers.flatMap(({ all }) => all);
  await reach(world, RECOVERY_MS, () => {
    if (!everywhere().every(({ oracle }) => oracle.isDone())) return 'not everything is stored';
    if (!areLevel(world)) return 'the replicas are not level';
    const halted = operators.map((resumeHalted) => resumeHalted());
    return halted.some((count) => count > 0) ? 'partitions are halted' : isReady();
  });
}

/** Lets time pass until everything is stored, and done that the writers are in haste to do, and checks it. */
export async function settle(world: World, { erases, fills = false }: Pick<Haste, 'erases' | 'fills'>): Promise<void> {
  await recover(world);
  if (erases) {
    await reach(world, ERASING_MS, () => {
      const isPending = world.servers.some(({ all }) =>
        all.some(({ clickhouse }) => clickhouse.tables.pendingDeletions.length > 0),
      );
      return isPending || !areLevel(world) ? 'deleted users are not erased' : undefined;
    });
  }
  if (fills) await reach(world, FILLING_MS, () => world.declarations.missing());
  if (world.violation === undefined) {
    for (const { oracle } of world.servers.flatMap(({ all }) => all)) oracle.checkEnd(erases);
  }
  if (world.violation === undefined) checkEqual(world);
}

/** Whether replicas have what their others have. */
function areLevel({ servers }: World): boolean {
  return servers.every(({ replicas }) => replicas?.isLevel ?? true);
}

/** Lets time pass until nothing is missing any more. @param missing returns what is */
async function reach(world: World, withinMs: number, missing: () => string | undefined): Promise<void> {
  const { time } = world;
  const isWrong = () => world.violation !== undefined;
  const until = time.nowMs + withinMs;
  for (let failure = missing(); failure !== undefined && !isWrong(); failure = missing()) {
    if (time.nowMs >= until) world.report(`${failure} ${withinMs / 1_000} s after the last fault`);
    else await time.runUntil(time.nowMs + LOOK_MS, isWrong);
  }
}

/** Returns a function that asks the writers what they say of themselves, and returns what is wrong by their last answers. */
function readiness({ writers }: World): () => string | undefined {
  const ready = new Set<string>();
  let [answer, looks] = ['no answer', 0];
  return () => {
    const writer = writers.find(({ name }) => !ready.has(name));
    if (!writer) return undefined;
    // A writer that has ended and was started again does not answer what it was asked before.
    if (looks % 10 === 0) {
      writer.complaints().then((complaints) => {
        answer = complaints.join('; ');
        if (answer === '') ready.add(writer.name);
        looks = 0;
      });
    }
    looks += 1;
    return `${writer.name} is not ready: ${answer}`;
  };
}

/** Ends all that is wrong, but for what is lost. */
export function endFaults(world: World): void {
  const { network, servers, kafka, writers } = world;
  world.note('there are no more faults from here on');
  network.mendAll();
  for (const { all, balancer, replicas, shared } of servers) {
    balancer?.leadTo(0);
    replicas?.mend();
    shared?.mend();
    for (const { clickhouse } of all) {
      clickhouse.start();
      clickhouse.slownessMs = clickhouse.healthyMs;
      clickhouse.refusals = 0;
    }
  }
  kafka.unreadable.clear();
  for (const node of kafka.nodes) if (!node.isUp) kafka.start(node);
  for (const writer of writers) {
    writer.thaw();
    writer.start();
  }
}

/**
 * An operator resumes each halted partition behind what it has lost, else at the oldest message. Without a loss, or a second server behind
 * the address, nothing may be halted. Returns a function that looks, and returns how many are halted.
 */
function operator({ time, kafka, sent }: World, { clickhouse, balancer, oracle }: Server): () => number {
  const seenAtMs = new Map<object, number>();
  return () => {
    const { tables } = clickhouse;
    const halted = [...tables.halts].filter(([, { isResumed }]) => !isResumed);
    for (const [name, halt] of halted) {
      // Where a second server has stored and committed first, this one has lost it, for all that a writer can know.
      const isLost = sent.hasLost || oracle.hasRestored || (balancer && !tables.positions.has(name));
      if (!isLost) {
        oracle.report(`${name} is halted, and no record was lost: ${halt.detail}`);
      }
      const sinceMs = seenAtMs.get(halt) ?? time.nowMs;
      seenAtMs.set(halt, sinceMs);
      if (time.nowMs - sinceMs < HALTED_MS) continue;
      const { topic, partition, reason, lastOffset } = halt;
      const nextOffset =
        reason === 'messages are gone' ? Number(lastOffset) + 1 : (kafka.log(topic, partition)?.low ?? 0);
      const position = { topic, partition, nextOffset, fingerprint: '', leaderEpoch: -1 };
      tables.positions.set(name, { ...position, storedAt: tables.positions.get(name)?.storedAt ?? 0 });
      tables.halts.set(name, { ...halt, isResumed: true });
    }
    return halted.length;
  };
}
