import { type Choice, type Fault, type FaultTable, holdRequest, type OwnTrigger, STALLING } from '../world/faults.ts';
import type { Request } from '../world/network.ts';
import type { Random } from '../world/random.ts';
import { chooseWriterFaults, chooseWriterKinds, LATE, WRITER_FAULTS } from '../writer/faults.ts';
import type { World } from '../writer/world.ts';
import type { SharedReplica } from './shared-replica.ts';
import type { SharedSet } from './shared-set.ts';

const LEAVES = 'replica leaves';
const COMES = 'replica comes for a moment';
const UNDER_WAY = 'commit under way';
const NO_KEEPER = 'replica without Keeper';
const DEATH = 'death of a replica';
const LAG = 'replica that knows little';
const CLOCK = 'clock of a replica';
const STRAY = 'statement that comes after its batch';

export const SHARED_FAULTS: FaultTable<World> = {
  ...WRITER_FAULTS,
  [LEAVES]: { weight: 10, begin: leave },
  [COMES]: { weight: 10, begin: come },
  [UNDER_WAY]: { weight: 10, begin: holdCommit },
  [NO_KEEPER]: { weight: 6, begin: loseKeeper },
  [DEATH]: { weight: 5, begin: die },
  [LAG]: { weight: 3, begin: lag },
  [CLOCK]: { weight: 3, begin: setClock },
  [STRAY]: { weight: 10, begin: holdStatement },
};

const STORING = [
  ...Array<string>(10).fill('store-events'),
  ...Array<string>(3).fill('store-positions'),
  ...['store-deletions', 'store-properties', 'store-seen-in-events', 'store-dead-letters', 'record-epoch'],
];

const OWN_TRIGGERS: Readonly<Record<string, OwnTrigger>> = {
  [LEAVES]: { moment: 'arrived', requests: STORING, until: ['store-events', 'store-positions', 'find-repeats'] },
  [COMES]: { moment: 'sent', requests: STORING },
  [UNDER_WAY]: { moment: 'arrived', requests: STORING },
  // Most can go wrong while its rows are stored again.
  [STRAY]: {
    moment: 'sent',
    requests: STORING,
    until: [
      ...Array<string>(3).fill('find-repeats'),
      'record-ended-batch',
      'find-statements-everywhere',
      'store-events',
    ],
  },
  [DEATH]: { moment: 'arrived', requests: [...STORING, 'find-statements-everywhere'] },
  [NO_KEEPER]: { moment: 'arrived', requests: [...STORING, 'read-sessions', 'record-ended-batch'] },
};

/** Chooses the faults of a schedule. Nothing is lost that Kafka or ClickHouse have acknowledged. */
export function chooseSharedFaults(random: Random, count: number, untilMs: number): Fault[] {
  const own = Array.from({ length: 1 + random.below(2) }, () =>
    random.pick([LEAVES, LEAVES, COMES, COMES, UNDER_WAY, UNDER_WAY, NO_KEEPER, DEATH, LAG, CLOCK]),
  );
  const among = random.next();
  // Most goes wrong where another writer takes over while something is under way, or a batch is tried again.
  const others =
    among < 0.2
      ? [LATE]
      : among < 0.35
        ? [STRAY]
        : among < 0.6
          ? ['rebalance', 'kill writer', 'break connection to ClickHouse', STRAY]
          : chooseWriterKinds(random, false).slice(0, 2);
  return chooseWriterFaults(random, { kinds: [...own, ...others], count, untilMs }, OWN_TRIGGERS);
}

/** Chooses what goes wrong while users or visitors are erased: inserts that do not know a deletion yet end late, or nobody knows when. */
export function chooseErasureFaults(
  random: Random,
  { isOfVisitors, count, untilMs }: { isOfVisitors: boolean; count: number; untilMs: number },
): Fault[] {
  const others = ['freeze writer', 'break connection to ClickHouse', STALLING, 'rebalance', NO_KEEPER];
  const late = Array<string>(isOfVisitors ? 6 : 3).fill(UNDER_WAY);
  const kinds = [...late, LEAVES, random.pick(others)];
  return chooseWriterFaults(random, { kinds, count, untilMs }, OWN_TRIGGERS);
}

/** The replica to which the statement goes leaves, with all that it is doing. */
function leave(world: World, { manner, target }: Choice, request?: Request) {
  const set = sharedOf(world);
  const left = new Set<SharedReplica>();
  const begin = (replica: SharedReplica) => {
    if (target < 0.6) replica.stallNext(200 + manner * 1_800);
    // Nobody learns what becomes of it, also once the replica is back.
    if (target < 0.3 && request) replica.heldCommit = { statement: request.what, ms: 900, losesSession: true };
    world.time.after(manner * 5, () => {
      if (world.network.isMended) return;
      // One that is cut off from the others is still expected to answer.
      if (target < 0.15) replica.answersOthers = false;
      else set.leave(replica);
      left.add(replica);
    });
  };
  onNextOf(set, request, target, begin);
  const end = () => {
    for (const replica of left) {
      replica.isListed = true;
      replica.answersOthers = true;
    }
  };
  const how = target < 0.15 ? 'is cut off from the others' : 'leaves';
  return { name: `the replica of ${request?.what ?? 'nothing'} ${how}`, end };
}

/** A new replica gets the statement, and is gone a moment later, with all that it is doing. */
function come(world: World, { manner, target }: Choice, request?: Request) {
  const set = sharedOf(world);
  const spare = set.replicas.at(-1);
  if (!spare || spare.isListed) return { name: 'no replica comes' };
  spare.setUpAnew();
  spare.isListed = true;
  set.newest = spare;
  onNextOf(set, request, target, (replica) => {
    if (replica !== spare) return;
    if (target < 0.7) replica.stallNext(200 + manner * 1_800);
    world.time.after(manner * 5, end);
  });
  const end = () => {
    if (!world.network.isMended && set.leave(spare)) set.newest = undefined;
  };
  return { name: `${spare.name} comes`, end };
}

/** What the replica sends to Keeper next is long under way, and it gives up waiting. */
function holdCommit(world: World, { manner, target }: Choice, request?: Request) {
  const set = sharedOf(world);
  const ms = 20 + manner * set.sessionMs * 1.3;
  onNextOf(set, request, target, (replica) => {
    // It has looked long before what was committed.
    if (target < 0.4) replica.stallNext(800 + manner * 1_100);
    // Its connection breaks while the commit is under way.
    replica.heldCommit = { statement: request?.what ?? 'store-events', ms, losesSession: target < 0.8 };
  });
  return { name: `the commit of ${request?.what ?? 'nothing'} is under way for ${Math.floor(ms)} ms` };
}

/** Its client finds the connection broken, and the statement arrives later. */
function holdStatement(world: World, { target }: Choice, request?: Request) {
  return holdRequest(world, { target, manner: 0.5 }, request);
}

function loseKeeper(world: World, { target }: Choice, request?: Request) {
  const set = sharedOf(world);
  const lost = new Set<SharedReplica>();
  onNextOf(set, request, target, (replica) => {
    lost.add(replica);
    replica.reachesKeeper = false;
    replica.session.lose();
  });
  const end = () => {
    for (const replica of lost) {
      replica.reachesKeeper = true;
      replica.connect();
    }
  };
  return { name: `the replica of ${request?.what ?? 'nothing'} has no session of Keeper`, end };
}

/** It is started again later. */
function die(world: World, { target, manner }: Choice, request?: Request) {
  const set = sharedOf(world);
  const dead = new Set<SharedReplica>();
  onNextOf(set, request, target, (replica) => {
    world.time.after(manner * 10, () => {
      if (world.network.isMended || dead.size > 0) return;
      dead.add(replica);
      replica.clickhouse?.stop();
      if (manner < 0.5) set.leave(replica);
    });
  });
  const end = () => {
    for (const replica of dead) {
      replica.clickhouse?.start();
      replica.isListed = true;
    }
  };
  return { name: `the replica of ${request?.what ?? 'nothing'} dies`, end };
}

function lag(world: World, { target, manner }: Choice) {
  const replica = chosenOf(sharedOf(world), target);
  replica.lagMs = 100 + manner * 3_000;
  const end = () => {
    replica.lagMs = 0;
  };
  return { name: `${replica.name} knows of commits after ${Math.floor(replica.lagMs)} ms`, end };
}

function setClock(world: World, { target, manner }: Choice) {
  const replica = chosenOf(sharedOf(world), target);
  replica.clockAheadMs = Math.floor((manner - 0.5) * 6_000);
  const end = () => {
    replica.clockAheadMs = 0;
  };
  return { name: `the clock of ${replica.name} is ${replica.clockAheadMs} ms ahead`, end };
}

/** Calls back with the replica to which the request goes that triggers the fault, else with any. */
function onNextOf(
  set: SharedSet,
  request: Request | undefined,
  target: number,
  run: (replica: SharedReplica) => void,
): void {
  if (request && request.server === set.name) set.onNext(request.what, run);
  else run(chosenOf(set, target));
}

function chosenOf({ replicas }: SharedSet, target: number): SharedReplica {
  const replica = replicas[Math.floor(target * 991) % replicas.length];
  if (!replica) throw new Error('there is no replica');
  return replica;
}

function sharedOf({ servers }: World): SharedSet {
  const shared = servers[0]?.shared;
  if (!shared) throw new Error('the server has no replicas that share its rows');
  return shared;
}
