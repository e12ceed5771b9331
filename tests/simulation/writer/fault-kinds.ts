import { nameOf } from '@sluice/storage/protocol/position';
import type { SimulatedClickHouse } from '../clickhouse/simulated-clickhouse.ts';
import type { PartitionLog } from '../kafka/partition-log.ts';
import { type Node, serverOf } from '../kafka/simulated-kafka.ts';
import { breakLink, type Choice, chosen } from '../world/faults.ts';
import type { Request } from '../world/network.ts';
import { committedOf, type Server, storedOf } from './server.ts';
import type { WriterPlace } from './simulated-writer.ts';
import type { World } from './world.ts';

export function killWriter(world: World, choice: Choice, request?: Request) {
  const writer = chosenWriter(world, choice, request);
  writer.kill();
  return { name: `${writer.name} is killed`, end: () => writer.start() };
}

export function freezeWriter(world: World, choice: Choice, request?: Request) {
  const writer = chosenWriter(world, choice, request);
  writer.freeze();
  return { name: `${writer.name} is frozen`, end: () => writer.thaw() };
}

export function breakClickHouse(world: World, choice: Choice, request?: Request) {
  const writer = chosenWriter(world, choice, request);
  const { name } = chosenClickHouse(world, choice, request);
  return breakLink(world.network, writer.name, name, choice);
}

export function breakKafka(world: World, choice: Choice, request?: Request) {
  const writer = chosenWriter(world, choice, request);
  const node = world.kafka.nodes[Math.floor(choice.manner * 97) % world.kafka.nodes.length] as Node;
  return breakLink(world.network, writer.name, serverOf(node), choice);
}

export function stopClickHouse(world: World, choice: Choice, request?: Request) {
  const clickhouse = chosenClickHouse(world, choice, request);
  clickhouse.stop();
  return { name: `${clickhouse.name} is stopped`, end: () => clickhouse.start() };
}

export function slowClickHouse(world: World, choice: Choice, request?: Request) {
  const clickhouse = chosenClickHouse(world, choice, request);
  clickhouse.slownessMs = 50 + choice.manner ** 2 * 6_000;
  const end = () => {
    clickhouse.slownessMs = clickhouse.healthyMs;
  };
  return { name: `${clickhouse.name} takes up to ${Math.floor(clickhouse.slownessMs)} ms for a statement`, end };
}

export function refuseStatements(world: World, choice: Choice, request?: Request) {
  const clickhouse = chosenClickHouse(world, choice, request);
  clickhouse.refusals = 0.1 + choice.manner / 2;
  const end = () => {
    clickhouse.refusals = 0;
  };
  return { name: `${clickhouse.name} refuses ${Math.floor(clickhouse.refusals * 100)} % of statements`, end };
}

export function rebalance(world: World, choice: Choice, request?: Request) {
  const server = chosenServer(world, choice, request);
  server.group.rebalance();
  return { name: `${nameOfGroup(server)} rebalances` };
}

export function loseCoordinator({ kafka }: World) {
  kafka.coordinator = -1;
  const end = () => {
    if (kafka.coordinator < 0) kafka.coordinator = kafka.someNodeId;
  };
  return { name: 'no group has a coordinator', end };
}

export function forgetGroup(world: World, choice: Choice, request?: Request) {
  const server = chosenServer(world, choice, request);
  server.group.forget();
  return { name: `Kafka forgets ${nameOfGroup(server)}` };
}

export function loseCommits(world: World, choice: Choice, request?: Request) {
  const server = chosenServer(world, choice, request);
  const { group } = server;
  const names = [...group.offsets.keys()];
  const name = names[Math.floor(choice.target * names.length)];
  if (name === undefined) return { name: 'no commits are lost' };
  const before = group.offsets.get(name) ?? 0;
  group.offsets.set(name, Math.floor(before * choice.manner));
  // The members find out when they join again.
  group.rebalance();
  const after = group.offsets.get(name);
  return { name: `commits of ${nameOfGroup(server)} to ${name} are lost: ${before} becomes ${after}` };
}

/** Retention deletes what is stored already, on all servers that store the log, and committed. */
export function deleteStored({ kafka, servers, sent }: World, choice: Choice) {
  const log = chosen(kafka.logs, choice);
  // Offsets of a log that was cut off say nothing about what is stored of it.
  if (sent.hasLost) return { name: 'nothing is deleted' };
  const storing = servers.filter((server) => server.stores(log));
  const done = storing.flatMap((server) => [storedOf(server, log), committedOf(server, log)]);
  log.deleteBefore(Math.floor(Math.min(...done) * choice.manner));
  return { name: `${nameOf(log)} begins at ${log.low}` };
}

/** Retention deletes records before they are stored. */
export function deleteUnread({ kafka, sent }: World, choice: Choice) {
  const log = chosen(kafka.logs, choice);
  sent.addLost(log, log.deleteBefore(log.high - Math.floor(choice.manner * 4)));
  return { name: `${nameOf(log)} begins at ${log.low}, whether it is stored or not` };
}

export function cutOffLog(world: World, choice: Choice) {
  const log = chosen(world.kafka.logs, choice);
  return cutOffAt(world, log, log.high - 1 - Math.floor(choice.manner * 4));
}

/**
 * A writer is killed with a commit on its way. The next fetch arrives late: by then a log that is stored further than it is
 * committed has been cut off, before what is committed, and may have grown again.
 */
export function cutOffUncommitted(world: World, choice: Choice, request?: Request) {
  const writer = world.writers.find(({ name }) => name === request?.process?.name);
  if (!request || !writer) return { name: 'no writer is killed' };
  const { kafka, network, time } = world;
  network.hold(request, true);
  network.lose(request);
  writer.kill();
  time.after(RESTART_MS, () => writer.start());
  let fetch: Request | undefined;
  network.watches.next({ what: 'fetch', moment: 'sent' }, (next) => {
    const { server } = writer;
    const uncommitted = kafka.logs.filter((log) => committedOf(server, log) < storedOf(server, log));
    if (uncommitted.length === 0) return;
    const log = chosen(uncommitted, choice);
    world.note(cutOffAt(world, log, committedOf(server, log) - 1 - Math.floor(choice.manner * 3)).name);
    network.hold(next, false);
    fetch = next;
  });
  const end = () => fetch && network.release(fetch);
  return { name: `${writer.name} is killed before its commit, and the next fetch is late`, end };
}

function cutOffAt({ sent }: World, log: PartitionLog, offset: number) {
  sent.addLost(log, log.cutOff(Math.max(log.low, offset)));
  return { name: `the log of ${nameOf(log)} is cut off at ${log.high}` };
}

export function removeRecord({ kafka, sent }: World, choice: Choice) {
  const log = chosen(kafka.logs, choice);
  const offset = log.high - 2 - Math.floor(choice.manner * 3);
  sent.addLost(log, log.remove(offset));
  return { name: `${nameOf(log)} has lost the record at ${offset}` };
}

/** ClickHouse is backed up now, and restored later: what was stored meanwhile is gone. */
export function restoreClickHouse(world: World, choice: Choice, request?: Request) {
  const server = chosenServer(world, choice, request);
  const restore = server.oracle.backUp();
  const end = () => {
    if (!world.network.isMended) withoutWriters(world, server, restore);
  };
  return { name: `${server.clickhouse.name} is backed up; it is restored later:`, end };
}

/** ClickHouse has lost its disk, and gets an empty one. */
export function wipeClickHouse(world: World, choice: Choice, request?: Request) {
  const server = chosenServer(world, choice, request);
  // The request that triggers it is served before.
  world.time.after(0, () => {
    if (!world.network.isMended) withoutWriters(world, server, () => server.oracle.wipe());
  });
  return { name: `${server.clickhouse.name} has lost everything` };
}

/** The operator stops the writers of a server while it is changed. */
function withoutWriters({ network }: World, { clickhouse, writers }: Server, change: () => void): void {
  for (const writer of writers) writer.kill();
  network.loseAllOf(writers.map(({ name }) => name));
  clickhouse.stop();
  change();
  clickhouse.start();
  for (const writer of writers) writer.start();
}

/** The statement that triggers it makes no progress, and the other statements do. */
export function stallStatement({ servers }: World, { manner }: Choice, request?: Request) {
  const ms = 100 + 4_000 * manner;
  const shared = servers.map((server) => server.shared).find((one) => one?.name === request?.server);
  const clickhouse = servers
    .flatMap(({ all }) => all)
    .map((one) => one.clickhouse)
    .find(({ name }) => name === request?.server);
  if (!request || !(clickhouse ?? shared)) return { name: 'nothing stalls' };
  if (shared) shared.onNext(request.what, (replica) => replica.stallNext(ms));
  else if (clickhouse) clickhouse.stallsNextMs = ms;
  return { name: `${request.what} of ${request.process?.name} stalls for ${Math.floor(ms)} ms` };
}

/** How long it takes until a writer is started again that was killed with a statement on its way, in milliseconds. */
const RESTART_MS = 300;

/** For how long a statement that comes late makes no progress at most, in milliseconds. */
const STALL_MS = 3_000;

/** A writer is killed or frozen with a statement on its way, which arrives later and takes long. */
export function sendLate(world: World, { target, manner }: Choice, request?: Request) {
  const writer = world.writers.find(({ name }) => name === request?.process?.name);
  if (!request || !writer) return { name: 'nothing is late' };
  const { network, time } = world;
  const clickhouse = chosenClickHouse(world, { target, manner }, request);
  const { shared } = writer.server;
  network.hold(request, true);
  const isKilled = target < 0.7;
  // Each writer that joins the group makes all of them take over, which ends what is late.
  const isAway = target < 0.5;
  if (isKilled) {
    writer.kill();
    if (!isAway) time.after(RESTART_MS, () => writer.start());
  } else writer.freeze();
  const end = () => {
    const ms = STALL_MS * manner;
    network.watches.next({ what: request.what, moment: 'arrived' }, () => {
      if (shared) shared.onNext(request.what, (replica) => replica.stallNext(ms));
      else clickhouse.stallsNextMs = ms;
    });
    network.release(request);
    if (isAway) time.after(STALL_MS, () => writer.start());
    else writer.thaw();
  };
  return { name: `${writer.name} is ${isKilled ? 'killed' : 'frozen'} with ${request.what} on its way`, end };
}

export function limitMemory(world: World, choice: Choice, request?: Request) {
  const clickhouse = chosenClickHouse(world, choice, request);
  clickhouse.rowsMax = 3 + Math.floor(choice.manner * 4);
  return { name: `${clickhouse.name} has memory for ${clickhouse.rowsMax} rows from here on` };
}

function nameOfGroup({ name }: Server): string {
  return name === '' ? 'the group' : `the group of ${name}`;
}

/** That which the request that triggers the fault is sent to, if any, else one of the writer whose request it is, or a random one. */
export function chosenClickHouse(world: World, choice: Choice, request: Request | undefined): SimulatedClickHouse {
  const { all, clickhouse } = chosenServer(world, choice, request);
  const asked = all.find((one) => one.clickhouse.name === request?.server);
  return (asked ?? all[Math.floor(choice.target * 991) % all.length])?.clickhouse ?? clickhouse;
}

/** The one of the writer whose request triggers the fault, if any. */
function chosenServer({ servers }: World, { target }: Choice, request: Request | undefined): Server {
  const own = servers.find(({ writers }) => writers.some(({ name }) => name === request?.process?.name));
  // What else the target decides of such a fault is to be independent of its server.
  return own ?? (servers[Math.floor(target * 997) % servers.length] as Server);
}

/** Mostly the one whose request triggers the fault. */
function chosenWriter({ writers }: World, { target }: Choice, request: Request | undefined): WriterPlace {
  const own = writers.find(({ name }) => name === request?.process?.name);
  if (own && target < 0.7) return own;
  return chosen(writers, { target: own ? (target - 0.7) / 0.3 : target, manner: 0 });
}
