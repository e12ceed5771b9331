import { type Entry, linkOf } from '../clickhouse/keeper.ts';
import { type Choice, type Fault, type FaultTable, type OwnTrigger, STALLING } from '../world/faults.ts';
import type { Request } from '../world/network.ts';
import type { Random } from '../world/random.ts';
import { chooseWriterFaults, chooseWriterKinds, LATE, WRITER_FAULTS } from '../writer/faults.ts';
import type { World } from '../writer/world.ts';
import type { PlacedReplica, ReplicaSet } from './replica-set.ts';

const UNKNOWN = 'unknown end of an insert';
const ALONE = 'part that Keeper does not have';
const HELD_PART = 'part that is not fetched';
const LONG_HELD_PART = 'part that is not fetched for long';
const NO_LEADER = 'no leader';
const DEATH = 'death of a replica';
const NO_KEEPER = 'replica without Keeper';
const LONG = 'replica without Keeper for long';
const LAG = 'replica that lags';
const CUT = 'replicas that do not reach each other';
const OLD_FILE = 'file that lacks a replica';

export const REPLICATED_FAULTS: FaultTable<World> = {
  ...WRITER_FAULTS,
  [UNKNOWN]: { weight: 10, begin: loseEndOfInsert },
  [ALONE]: { weight: 8, begin: keepPartAlone },
  [HELD_PART]: { weight: 10, begin: holdPart },
  [LONG_HELD_PART]: { weight: 4, begin: holdPartForLong },
  [DEATH]: { weight: 4, begin: killReplica },
  [NO_KEEPER]: { weight: 10, begin: loseKeeper },
  [LONG]: { weight: 3, begin: loseKeeperForLong },
  [LAG]: { weight: 10, begin: lag },
  [CUT]: { weight: 6, begin: cutOffReplicas },
  [OLD_FILE]: { weight: 6, begin: startWithOldFile },
};

const INSERTS = [
  ...Array<string>(8).fill('store-events'),
  ...Array<string>(4).fill('store-positions'),
  ...['store-deletions', 'store-pending-deletions', 'store-properties', 'store-seen-in-events', 'store-dead-letters'],
];

/** What says who is deleted, and whose visitors are. */
const OF_DELETIONS = [
  ...Array<string>(8).fill('store-deletions'),
  ...Array<string>(5).fill('store-identity-deletions'),
  ...Array<string>(5).fill('store-links'),
];

const OWN_TRIGGERS: Readonly<Record<string, OwnTrigger>> = {
  [UNKNOWN]: { moment: 'arrived', requests: INSERTS },
  [ALONE]: { moment: 'arrived', requests: ['store-events'] },
  [HELD_PART]: { moment: 'arrived', requests: INSERTS },
  [LONG_HELD_PART]: { moment: 'arrived', requests: [...INSERTS, ...OF_DELETIONS] },
  // Most is lost by one that dies just after somebody took what it has for stored.
  [DEATH]: { moment: 'served', requests: ['store-events', 'store-positions', 'offsetCommit', 'find-repeats'] },
  [OLD_FILE]: { moment: 'sent', requests: ['store-events'] },
  [NO_KEEPER]: { moment: 'arrived', requests: [...INSERTS, 'record-epoch', 'end-older-statements'] },
};

/** Chooses what goes wrong while users are erased: replicas lack something for long, and writers are behind. */
export function chooseErasureFaults(random: Random, count: number, untilMs: number): Fault[] {
  const others = ['freeze writer', 'break connection to ClickHouse', STALLING, NO_KEEPER, CUT, 'rebalance', LAG];
  const kinds = [LONG_HELD_PART, LONG_HELD_PART, NO_LEADER, NO_LEADER, random.pick(others)];
  const faults = chooseWriterFaults(random, { kinds, count, untilMs }, OWN_TRIGGERS);
  return faults.map((fault) => {
    if (fault.kind !== NO_LEADER) return fault;
    const { trigger: _trigger, until: _until, ...lasting } = fault;
    return { ...lasting, forMs: 3_000 + 6_000 * fault.manner };
  });
}

/** Chooses the faults of writers whose last insert is under way while another writer, at another replica, takes their partitions over. */
export function chooseLateFaults(random: Random, count: number, untilMs: number): Fault[] {
  const late = ['find-repeats', 'store-events', 'store-events', 'store-positions', 'store-positions'];
  // Some begin before the epoch is recorded, and are running then.
  const until = ['newest-epoch', 'newest-epoch', 'record-epoch', 'record-epoch', ...late];
  const own: Readonly<Record<string, OwnTrigger>> = { [LATE]: { moment: 'sent', requests: ['store-events'], until } };
  const faults = chooseWriterFaults(random, { kinds: [LATE], count, untilMs }, own);
  // Until the take-over has begun, at least.
  return faults.map((fault) => ({ ...fault, forMs: 1_000 + 4_000 * fault.manner }));
}

/** Chooses the faults of a schedule. A replica may die with what only it has, and nothing else is lost. */
export function chooseReplicatedFaults(random: Random, count: number, untilMs: number): Fault[] {
  const own = Array.from({ length: 1 + random.below(3) }, () =>
    random.pick([UNKNOWN, ALONE, HELD_PART, DEATH, NO_KEEPER, LAG, CUT, LONG]),
  );
  // What one replica alone has is lost while no other one can be brought level.
  if (random.isTrue(0.12))
    return chooseWriterFaults(random, { kinds: [UNKNOWN, NO_KEEPER, HELD_PART], count, untilMs }, OWN_TRIGGERS);
  // What was sent to a replica that nobody fences may arrive late.
  if (random.isTrue(0.1))
    return chooseWriterFaults(random, { kinds: [OLD_FILE, LATE, LATE], count, untilMs }, OWN_TRIGGERS);
  const among = random.next();
  // Most goes wrong where another writer takes over while a replica lacks something.
  const others =
    among < 0.25 ? [LATE] : among < 0.6 ? ['rebalance', 'kill writer'] : chooseWriterKinds(random, false).slice(0, 2);
  const kinds = [...own, ...others];
  return chooseWriterFaults(random, { kinds, count, untilMs }, OWN_TRIGGERS);
}

/** The next insert at the replica does not learn that it has committed, and nobody fetches its part for now. */
function loseEndOfInsert(world: World, choice: Choice, request?: Request) {
  const { set, placed } = chosenReplica(world, choice, request);
  placed.replica.losesNextAnswer = true;
  const end = hold(set, placed, choice);
  return { name: `the next insert at ${placed.clickhouse.name} ends as one whose end nobody knows`, end };
}

/** The next insert of events does not learn that Keeper did not get its part, which is read for a while. */
function keepPartAlone(world: World, choice: Choice, request?: Request) {
  const { placed } = chosenReplica(world, choice, request);
  placed.replica.keepsNextAlone = true;
  return { name: `the next part of ${placed.clickhouse.name} is not in Keeper` };
}

function holdPart(world: World, choice: Choice, request?: Request) {
  const { set, placed } = chosenReplica(world, choice, request);
  return { name: `the next part of ${placed.clickhouse.name} is not fetched`, end: hold(set, placed, choice) };
}

/** Until there are no more faults, one of the replicas does not fetch it. */
function holdPartForLong(world: World, { target }: Choice, request?: Request) {
  const { set, placed } = chosenReplica(world, { target, manner: 0 }, request);
  hold(set, placed, { target, manner: 0.5 + target / 2 });
  return { name: `one replica does not fetch the next part of ${placed.clickhouse.name} for long` };
}

/** All others do not fetch it, or one of them does not. */
function hold({ keeper, listed }: ReplicaSet, { replica }: PlacedReplica, { manner }: Choice): () => void {
  const all = listed.map((placed) => placed.replica).filter((other) => other !== replica);
  const one = all[Math.floor(manner * 89) % Math.max(1, all.length)];
  const behind = manner < 0.5 || !one ? all : [one];
  let held: Entry | undefined;
  replica.onNextPart = (entry) => {
    held = entry;
    keeper.held.set(entry.number, behind);
  };
  return () => {
    if (held) keeper.held.delete(held.number);
  };
}

/** One at most. The operator drops it later. */
function killReplica(world: World, choice: Choice, request?: Request) {
  const { set, placed } = chosenReplica(world, choice, request);
  if (set.hasDead) return { name: 'no second replica dies' };
  set.kill(placed);
  return { name: `${placed.clickhouse.name} dies`, end: () => set.dropDead() };
}

function loseKeeper(world: World, choice: Choice, request?: Request) {
  const { set, placed } = chosenReplica(world, choice, request);
  const { replica, clickhouse } = placed;
  if (!replica.hasSession) return { name: `${clickhouse.name} has no session of Keeper anyway` };
  replica.setSession(false, choice.manner < 0.4);
  const name = `${clickhouse.name} has no session of Keeper${replica.isReadOnly ? ' and refuses inserts' : ''}`;
  return { name, end: () => set.mendSession(placed) };
}

/** Until there are no more faults, and writers have left it. */
function loseKeeperForLong(world: World, choice: Choice, request?: Request) {
  const { set, placed } = chosenReplica(world, choice, request);
  set.stick(placed);
  return { name: `${placed.clickhouse.name} has no session of Keeper for long` };
}

function lag(world: World, choice: Choice, request?: Request) {
  const { placed } = chosenReplica(world, choice, request);
  placed.replica.lagMs = 50 + choice.manner ** 2 * 4_000;
  const end = () => {
    placed.replica.lagMs = 0;
  };
  return { name: `${placed.clickhouse.name} lags by up to ${Math.floor(placed.replica.lagMs)} ms`, end };
}

function cutOffReplicas(world: World, choice: Choice, request?: Request) {
  const { set, placed } = chosenReplica(world, choice, request);
  const other = set.listed[Math.floor(choice.manner * 97) % set.listed.length] ?? placed;
  const link = linkOf(placed.replica, other.replica);
  set.keeper.cut.add(link);
  return { name: `${link} is cut`, end: () => set.keeper.cut.delete(link) };
}

/** As when the file of servers is put back to what it was before a replica was added. */
function startWithOldFile(world: World, choice: Choice, request?: Request) {
  const { set, placed } = chosenReplica(world, choice, request);
  set.hide(placed);
  return { name: `all writers start with a file that lacks ${placed.clickhouse.name}` };
}

/** The one that the request which triggers the fault is sent to, if any. */
function chosenReplica({ servers }: World, { target }: Choice, request: Request | undefined) {
  const sets = servers.flatMap(({ replicas }) => replicas ?? []);
  const isAsked = ({ clickhouse }: PlacedReplica) => clickhouse.name === request?.server;
  const set = sets.find(({ listed }) => listed.some(isAsked)) ?? sets[Math.floor(target * 983) % sets.length];
  if (!set) throw new Error('the server has no replicas');
  const asked = set.listed.find(isAsked);
  const placed = asked ?? set.listed[Math.floor(target * 991) % set.listed.length];
  if (!placed) throw new Error('no replica is left');
  return { set, placed };
}
