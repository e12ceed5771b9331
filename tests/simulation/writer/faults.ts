import type { Fault, FaultTable } from '../world/faults.ts';
import type { Random } from '../world/random.ts';
import * as kinds from './fault-kinds.ts';
import type { World } from './world.ts';

/** The fault that happens to the request which triggers it. */
const HOLDING = 'hold request';

export const WRITER_FAULTS: FaultTable<World> = {
  'kill writer': { weight: 6, begin: kinds.killWriter },
  'freeze writer': { weight: 6, begin: kinds.freezeWriter },
  'hold request': { weight: 8, begin: kinds.holdRequest },
  'break connection to ClickHouse': { weight: 6, begin: kinds.breakClickHouse },
  'break connection to Kafka': { weight: 5, begin: kinds.breakKafka },
  'stop ClickHouse': { weight: 2, begin: kinds.stopClickHouse },
  'slow ClickHouse': { weight: 3, begin: kinds.slowClickHouse },
  'ClickHouse out of memory': { weight: 3, begin: kinds.refuseStatements },
  'little memory': { weight: 1, begin: kinds.limitMemory },
  'stop Kafka node': { weight: 2, begin: kinds.stopNode },
  rebalance: { weight: 4, begin: kinds.rebalance },
  'no coordinator': { weight: 2, begin: kinds.loseCoordinator },
  'forget group': { weight: 3, begin: kinds.forgetGroup },
  'lose commits': { weight: 2, begin: kinds.loseCommits },
  'move leader': { weight: 2, begin: kinds.moveLeader },
  'no leader': { weight: 2, begin: kinds.loseLeader },
  'unreadable partition': { weight: 2, begin: kinds.makeUnreadable },
  'delete stored records': { weight: 2, begin: kinds.deleteStored },
  'delete unread records': { weight: 2, begin: kinds.deleteUnread },
  'remove record': { weight: 2, begin: kinds.removeRecord },
  'cut off log': { weight: 4, begin: kinds.cutOffLog },
  'restore ClickHouse': { weight: 3, begin: kinds.restoreClickHouse },
};

/** Those with which Kafka or ClickHouse lose what they have acknowledged. */
const LOSING = new Set(['delete unread records', 'remove record', 'cut off log', 'restore ClickHouse']);

/** What writers ask for, each with how often faults wait for it, compared with others. */
const REQUESTS: Readonly<Record<string, number>> = {
  'store-events': 8,
  'find-repeats': 4,
  'drop-repeats': 1,
  'store-positions': 5,
  'record-epoch': 5,
  'newest-epoch': 4,
  'end-older-statements': 4,
  'end-own-statements': 3,
  'SELECT 1': 2,
  'load-events': 2,
  'load-changes': 1,
  'inspect-events': 1,
  'store-deletions': 2,
  'store-pending-deletions': 2,
  'store-properties': 2,
  'store-seen-in-events': 2,
  'store-dead-letters': 2,
  'read-partitions': 2,
  'record-halt': 2,
  'find-deleted-rows': 1,
  'erase-events': 1,
  'forget-erased': 1,
  offsetCommit: 5,
  joinGroup: 2,
  syncGroup: 4,
  fetch: 3,
  heartbeat: 1,
  offsetFetch: 2,
  listOffsets: 1,
  describeGroups: 3,
};

const TRIGGERS = Object.entries(REQUESTS).flatMap(([what, weight]) => Array<string>(weight).fill(what));

/** Chooses the faults of a schedule: of few kinds, so that many of a kind come together. */
export function chooseWriterFaults(random: Random, count: number, untilMs: number, mayLose: boolean): Fault[] {
  const chosen = chooseKinds(random, mayLose);
  const faults = Array.from({ length: count }, () => chooseFault(random, random.pick(chosen), untilMs));
  return faults.sort((one, other) => one.atMs - other.atMs);
}

function chooseKinds(random: Random, mayLose: boolean): string[] {
  const pool = (loses: boolean) =>
    Object.entries(WRITER_FAULTS)
      .filter(([kind]) => LOSING.has(kind) === loses)
      .flatMap(([kind, { weight }]) => Array<string>(weight).fill(kind));
  const chosen = Array.from({ length: 1 + random.below(4) }, () => random.pick(pool(false)));
  if (!mayLose) return chosen;
  // What is restored must still be in Kafka.
  const safe = chosen.filter((kind) => kind !== 'delete stored records');
  return [...safe, random.pick(pool(true))];
}

function chooseFault(random: Random, kind: string, untilMs: number): Fault {
  const isTriggered = kind === HOLDING || random.isTrue(0.6);
  const moment = kind === HOLDING ? 'sent' : random.pick(['sent', 'arrived', 'served'] as const);
  return {
    atMs: Math.floor(random.between(0, untilMs)),
    kind,
    // Short ones are the rule: they are over while what they have hit still goes on.
    forMs: Math.floor(10 ** random.between(1, 3.8)),
    target: random.next(),
    manner: random.next(),
    trigger: isTriggered ? { what: random.pick(TRIGGERS), moment } : undefined,
    afterMs: kind === HOLDING || random.isTrue(0.5) ? 0 : Math.floor(random.between(0, 30)),
    until: random.isTrue(0.5)
      ? { what: random.pick(TRIGGERS), moment: random.pick(['sent', 'arrived', 'served'] as const) }
      : undefined,
  };
}
