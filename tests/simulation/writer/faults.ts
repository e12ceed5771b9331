import { KAFKA_FAULTS } from '../kafka/faults.ts';
import {
  chooseFaults,
  chooseKinds,
  type Fault,
  type FaultTable,
  HOLDING,
  holdRequest,
  type OwnTrigger,
  STALLING,
} from '../world/faults.ts';
import type { Random } from '../world/random.ts';
import * as kinds from './fault-kinds.ts';
import type { World } from './world.ts';

export const LATE = 'late statement';
const CUT_OFF_UNCOMMITTED = 'cut off uncommitted log';

/** What a take-over does, and what a batch does that repeats another: a late statement may arrive in their midst. */
const OF_SUCCESSORS = ['newest-epoch', 'record-epoch', 'end-older-statements', 'read-partitions', 'find-repeats'];

const OWN_TRIGGERS: Readonly<Record<string, OwnTrigger>> = {
  [LATE]: {
    moment: 'sent',
    requests: ['store-events', 'store-events', 'store-events', 'store-positions', 'record-epoch', 'store-properties'],
    // Most can go wrong around the end of older statements.
    until: [...OF_SUCCESSORS, ...Array<string>(5).fill('end-older-statements'), 'store-events', 'store-positions'],
  },
  [CUT_OFF_UNCOMMITTED]: { moment: 'sent', requests: ['offsetCommit'] },
};

export const WRITER_FAULTS: FaultTable<World> = {
  ...KAFKA_FAULTS,
  'kill writer': { weight: 6, begin: kinds.killWriter },
  'freeze writer': { weight: 6, begin: kinds.freezeWriter },
  [HOLDING]: { weight: 8, begin: holdRequest },
  [LATE]: { weight: 6, begin: kinds.sendLate },
  [STALLING]: { weight: 5, begin: kinds.stallStatement },
  'break connection to ClickHouse': { weight: 6, begin: kinds.breakClickHouse },
  'break connection to Kafka': { weight: 5, begin: kinds.breakKafka },
  'stop ClickHouse': { weight: 2, begin: kinds.stopClickHouse },
  'slow ClickHouse': { weight: 3, begin: kinds.slowClickHouse },
  'ClickHouse out of memory': { weight: 3, begin: kinds.refuseStatements },
  'little memory': { weight: 1, begin: kinds.limitMemory },
  rebalance: { weight: 4, begin: kinds.rebalance },
  'no coordinator': { weight: 2, begin: kinds.loseCoordinator },
  'forget group': { weight: 3, begin: kinds.forgetGroup },
  'lose commits': { weight: 2, begin: kinds.loseCommits },
  'delete stored records': { weight: 2, begin: kinds.deleteStored },
  'delete unread records': { weight: 2, begin: kinds.deleteUnread },
  'remove record': { weight: 2, begin: kinds.removeRecord },
  'cut off log': { weight: 4, begin: kinds.cutOffLog },
  [CUT_OFF_UNCOMMITTED]: { weight: 3, begin: kinds.cutOffUncommitted },
  'restore ClickHouse': { weight: 3, begin: kinds.restoreClickHouse },
};

/** The faults with which Kafka or ClickHouse lose what they have acknowledged. */
const LOSING = new Set([
  'delete unread records',
  'remove record',
  'cut off log',
  CUT_OFF_UNCOMMITTED,
  'restore ClickHouse',
]);

/** What writers ask for, each with how often faults wait for it, compared with others. */
export const REQUESTS: Readonly<Record<string, number>> = {
  'store-events': 8,
  'find-repeats': 4,
  'drop-repeats': 1,
  'store-positions': 5,
  'record-epoch': 5,
  'newest-epoch': 4,
  'end-older-statements': 4,
  'end-own-statements': 3,
  'close-session': 2,
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
  fetchRecord: 1,
  heartbeat: 1,
  offsetFetch: 2,
  listOffsets: 1,
  describeGroups: 3,
};

/** Chooses the faults of a schedule of writers. @param own what other kinds of faults than those of writers wait for */
export function chooseWriterFaults(
  random: Random,
  choice: { readonly kinds: readonly string[]; readonly count: number; readonly untilMs: number },
  own: Readonly<Record<string, OwnTrigger>> = {},
): Fault[] {
  return chooseFaults(random, { ...choice, requests: REQUESTS, own: { ...OWN_TRIGGERS, ...own } });
}

/** Chooses which faults there are. @param mayLose whether Kafka or ClickHouse may lose what they have acknowledged */
export function chooseWriterKinds(random: Random, mayLose: boolean): string[] {
  const pool = (loses: boolean) =>
    Object.fromEntries(Object.entries(WRITER_FAULTS).filter(([kind]) => LOSING.has(kind) === loses));
  const kinds = chooseKinds(random, pool(false), 4);
  if (!mayLose) return kinds;
  return [...keepingLog(kinds), ...chooseKinds(random, pool(true), 1)];
}

/** What a server has lost must still be in Kafka. */
export function keepingLog(kinds: readonly string[]): string[] {
  return kinds.filter((kind) => kind !== 'delete stored records');
}
