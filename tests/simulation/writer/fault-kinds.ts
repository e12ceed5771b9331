import { nameOf } from '@sluice/writer/protocol/position';
import { CLICKHOUSE, HEALTHY_MS } from '../clickhouse/simulated-clickhouse.ts';
import type { PartitionLog } from '../kafka/partition-log.ts';
import { type Node, serverOf } from '../kafka/simulated-kafka.ts';
import { breakLink, type Choice, chosen } from '../world/faults.ts';
import type { Request } from '../world/network.ts';
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
  return breakLink(world.network, chosenWriter(world, choice, request).name, CLICKHOUSE, choice);
}

export function breakKafka(world: World, choice: Choice, request?: Request) {
  const writer = chosenWriter(world, choice, request);
  const node = world.kafka.nodes[Math.floor(choice.manner * 97) % world.kafka.nodes.length] as Node;
  return breakLink(world.network, writer.name, serverOf(node), choice);
}

export function stopClickHouse({ clickhouse }: World) {
  clickhouse.stop();
  return { name: 'ClickHouse is stopped', end: () => clickhouse.start() };
}

export function slowClickHouse({ clickhouse }: World, { manner }: Choice) {
  clickhouse.slownessMs = 50 + manner ** 2 * 6_000;
  const end = () => {
    clickhouse.slownessMs = HEALTHY_MS;
  };
  return { name: `ClickHouse takes up to ${Math.floor(clickhouse.slownessMs)} ms for a statement`, end };
}

export function refuseStatements({ clickhouse }: World, { manner }: Choice) {
  clickhouse.refusals = 0.1 + manner / 2;
  const end = () => {
    clickhouse.refusals = 0;
  };
  return { name: `ClickHouse refuses ${Math.floor(clickhouse.refusals * 100)} % of statements`, end };
}

export function rebalance({ kafka }: World) {
  kafka.group.rebalance();
  return { name: 'the group rebalances' };
}

export function loseCoordinator({ kafka }: World) {
  kafka.coordinator = -1;
  const end = () => {
    if (kafka.coordinator < 0) kafka.coordinator = kafka.someNodeId;
  };
  return { name: 'the group has no coordinator', end };
}

export function forgetGroup({ kafka }: World) {
  kafka.group.forget();
  return { name: 'Kafka forgets the group' };
}

export function loseCommits({ kafka }: World, { target, manner }: Choice) {
  const names = [...kafka.group.offsets.keys()];
  const name = names[Math.floor(target * names.length)];
  if (name === undefined) return { name: 'no commits are lost' };
  const before = kafka.group.offsets.get(name) ?? 0;
  kafka.group.offsets.set(name, Math.floor(before * manner));
  // The members find out when they join again.
  kafka.group.rebalance();
  return { name: `commits of ${name} are lost: ${before} becomes ${kafka.group.offsets.get(name)}` };
}

/** Retention deletes what is stored and committed already. */
export function deleteStored({ kafka, clickhouse, oracle }: World, choice: Choice) {
  const log = chosen(kafka.logs, choice);
  // Offsets of a log that was cut off say nothing about what is stored of it.
  if (oracle.hasLost) return { name: 'nothing is deleted' };
  const stored = clickhouse.tables.positions.get(nameOf(log))?.nextOffset ?? 0;
  const committed = kafka.group.offsets.get(nameOf(log)) ?? 0;
  log.deleteBefore(Math.floor(Math.min(stored, committed) * choice.manner));
  return { name: `${nameOf(log)} begins at ${log.low}` };
}

/** Retention deletes records before they are stored. */
export function deleteUnread({ kafka, oracle }: World, choice: Choice) {
  const log = chosen(kafka.logs, choice);
  oracle.addLost(log, log.deleteBefore(log.high - Math.floor(choice.manner * 4)));
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
  const { kafka, clickhouse, network, time } = world;
  network.hold(request, true);
  network.lose(request);
  writer.kill();
  time.after(RESTART_MS, () => writer.start());
  let fetch: Request | undefined;
  network.watches.next({ what: 'fetch', moment: 'sent' }, (next) => {
    const committed = (log: PartitionLog) => kafka.group.offsets.get(nameOf(log)) ?? 0;
    const stored = (log: PartitionLog) => clickhouse.tables.positions.get(nameOf(log))?.nextOffset ?? 0;
    const uncommitted = kafka.logs.filter((log) => committed(log) < stored(log));
    if (uncommitted.length === 0) return;
    const log = chosen(uncommitted, choice);
    world.note(cutOffAt(world, log, committed(log) - 1 - Math.floor(choice.manner * 3)).name);
    network.hold(next, false);
    fetch = next;
  });
  const end = () => fetch && network.release(fetch);
  return { name: `${writer.name} is killed before its commit, and the next fetch is late`, end };
}

function cutOffAt({ oracle }: World, log: PartitionLog, offset: number) {
  oracle.addLost(log, log.cutOff(Math.max(log.low, offset)));
  return { name: `the log of ${nameOf(log)} is cut off at ${log.high}` };
}

export function removeRecord({ kafka, oracle }: World, choice: Choice) {
  const log = chosen(kafka.logs, choice);
  const offset = log.high - 2 - Math.floor(choice.manner * 3);
  oracle.addLost(log, log.remove(offset));
  return { name: `${nameOf(log)} has lost the record at ${offset}` };
}

/** ClickHouse is backed up now, and restored later: what was stored meanwhile is gone. The operator stops the writers before. */
export function restoreClickHouse(world: World) {
  const restore = world.oracle.backUp();
  const end = () => {
    if (world.network.isMended) return;
    for (const writer of world.writers) writer.kill();
    world.network.loseAll();
    world.clickhouse.stop();
    restore();
    world.clickhouse.start();
    for (const writer of world.writers) writer.start();
  };
  return { name: 'ClickHouse is backed up; it is restored later:', end };
}

/** The statement that triggers it makes no progress, and the other statements do. */
export function stallStatement({ clickhouse }: World, { manner }: Choice, request?: Request) {
  if (request?.server !== CLICKHOUSE) return { name: 'nothing stalls' };
  clickhouse.stallsNextMs = 100 + 4_000 * manner;
  return { name: `${request.what} of ${request.process?.name} stalls for ${Math.floor(clickhouse.stallsNextMs)} ms` };
}

/** How long it takes until a writer is started again that was killed with a statement on its way, in milliseconds. */
const RESTART_MS = 300;

/** A writer is killed or frozen with a statement on its way, which arrives later and takes long. */
export function sendLate(world: World, { target, manner }: Choice, request?: Request) {
  const writer = world.writers.find(({ name }) => name === request?.process?.name);
  if (!request || !writer) return { name: 'nothing is late' };
  const { network, clickhouse, time } = world;
  network.hold(request, true);
  const isKilled = target < 0.5;
  if (isKilled) {
    writer.kill();
    time.after(RESTART_MS, () => writer.start());
  } else writer.freeze();
  const end = () => {
    network.watches.next({ what: request.what, moment: 'arrived' }, () => {
      clickhouse.stallsNextMs = 3_000 * manner;
    });
    network.release(request);
    writer.thaw();
  };
  return { name: `${writer.name} is ${isKilled ? 'killed' : 'frozen'} with ${request.what} on its way`, end };
}

export function limitMemory({ clickhouse }: World, { manner }: Choice) {
  clickhouse.rowsMax = 3 + Math.floor(manner * 4);
  return { name: `ClickHouse has memory for ${clickhouse.rowsMax} rows from here on` };
}

/** Mostly the one whose request triggers the fault. */
function chosenWriter({ writers }: World, { target }: Choice, request: Request | undefined): WriterPlace {
  const own = writers.find(({ name }) => name === request?.process?.name);
  if (own && target < 0.7) return own;
  return chosen(writers, { target: own ? (target - 0.7) / 0.3 : target, manner: 0 });
}
