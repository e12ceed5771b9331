import { type Choice, type Fault, type FaultTable, holdRequest, type OwnTrigger } from '../world/faults.ts';
import type { Request } from '../world/network.ts';
import type { Random } from '../world/random.ts';
import { chooseWriterFaults, chooseWriterKinds, LATE, WRITER_FAULTS } from '../writer/faults.ts';
import type { World } from '../writer/world.ts';
import { SESSION_MS } from './keeper-session.ts';
import type { SharedReplica } from './shared-replica.ts';
import type { SharedSet } from './shared-set.ts';

const LEAVES = 'replica leaves';
const UNDER_WAY = 'commit under way';
const NO_KEEPER = 'replica without Keeper';
const DEATH = 'death of a replica';
const LAG = 'replica that knows little';
const CLOCK = 'clock of a replica';
const STRAY = 'statement that comes after its batch';

export const SHARED_FAULTS: FaultTable<World> = {
  ...WRITER_FAULTS,
  [LEAVES]: { weight: 10, begin: leave },
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
    random.pick([LEAVES, LEAVES, UNDER_WAY, UNDER_WAY, NO_KEEPER, DEATH, LAG, CLOCK]),
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

/** The replica to which the statement goes leaves, with all that it is doing. */
function leave(world: World, { manner, target }: Choice, request?: Request) {
  const set = sharedOf(world);
  const left = new Set<SharedReplica>();
  const begin = (replica: SharedReplica) => {
    if (target < 0.6) replica.stallNext(200 + manner * 1_800);
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

/** What the replica sends to Keeper next is long under way, and it gives up waiting. */
function holdCommit(world: World, { manner, target }: Choice, request?: Request) {
  const set = sharedOf(world);
  const ms = 20 + manner * SESSION_MS * 1.3;
  onNextOf(set, request, target, (replica) => {
    replica.holdsNextMs = ms;
    // Its connection breaks while the commit is under way.
    if (target < 0.8) replica.losesWhileHeld = true;
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
