import { createHash } from 'node:crypto';
import { installBrokers } from '../kafka/install-brokers.ts';
import type { SimulatedKafka } from '../kafka/simulated-kafka.ts';
import type { Fault } from './faults.ts';
import type { VirtualTime } from './virtual-time.ts';

/** A kind of simulation: what runs in its world, and what goes wrong there. */
export interface Kind {
  readonly name: string;
  /** Creates the schedule of a seed. @param note called with each line of the trace */
  create(seed: number, note: (line: string) => void): Schedule;
}

export interface Schedule {
  readonly world: {
    readonly time: VirtualTime;
    readonly kafka: SimulatedKafka;
    /** What is wrong, if anything. */
    readonly violation: string | undefined;
    report(violation: string): void;
  };
  /** The seed's own faults. */
  readonly faults: readonly Fault[];
  /** Lets everything happen, under these faults, and compares what there is in the end. */
  run(faults: readonly Fault[]): Promise<void>;
  /** Ends all processes. */
  end(): void;
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
 * Runs a schedule in a simulated world.
 *
 * @param given faults that happen instead of the seed's own, to find out which of them are needed
 * @param onNote called with each line of the trace
 */
export async function runSchedule(
  kind: Kind,
  seed: number,
  given?: readonly Fault[],
  onNote?: (line: string) => void,
): Promise<Outcome> {
  const hash = createHash('sha256');
  const { world, ...schedule } = kind.create(seed, (line) => {
    hash.update(`${line}\n`);
    onNote?.(line);
  });
  const faults = given ?? schedule.faults;
  const uninstallTime = world.time.install();
  // Most errors are expected here, and their stack traces would cost more than most other things.
  const { stackTraceLimit } = Error;
  if (!onNote) Error.stackTraceLimit = 0;
  const uninstallBrokers = installBrokers(world.kafka);
  const onUnhandled = (error: unknown) => world.report(`nobody handles ${(error as Error).stack ?? error}`);
  process.on('unhandledRejection', onUnhandled);
  process.on('uncaughtException', onUnhandled);
  try {
    await schedule.run(faults);
  } finally {
    process.off('unhandledRejection', onUnhandled);
    process.off('uncaughtException', onUnhandled);
    uninstallBrokers();
    uninstallTime();
    Error.stackTraceLimit = stackTraceLimit;
    schedule.end();
  }
  const { violation, time } = world;
  return {
    ...{ violation, faults, digest: hash.digest('hex').slice(0, 16) },
    ...{ happened: time.happened, virtualMs: time.nowMs },
  };
}
