import { nameOf } from '@sluice/writer/protocol/position';
import { CLICKHOUSE, HEALTHY_MS } from '../clickhouse/simulated-clickhouse.ts';
import { type Node, serverOf } from '../kafka/simulated-kafka.ts';
import { chosen, type Fault, type FaultTable } from '../world/faults.ts';
import type { LinkFault } from '../world/network.ts';
import type { WriterPlace } from './simulated-writer.ts';
import type { World } from './world.ts';

export const WRITER_FAULTS: FaultTable<World> = {
  'kill writer': { weight: 6, begin: killWriter },
  'freeze writer': { weight: 4, begin: freezeWriter },
  'break connection to ClickHouse': { weight: 6, begin: breakClickHouse },
  'break connection to Kafka': { weight: 5, begin: breakKafka },
  'stop ClickHouse': { weight: 2, begin: stopClickHouse },
  'slow ClickHouse': { weight: 3, begin: slowClickHouse },
  'ClickHouse out of memory': { weight: 3, begin: refuseStatements },
  'stop Kafka node': { weight: 2, begin: stopNode },
  rebalance: { weight: 3, begin: rebalance },
  'no coordinator': { weight: 2, begin: loseCoordinator },
  'forget group': { weight: 1, begin: forgetGroup },
  'lose commits': { weight: 2, begin: loseCommits },
  'move leader': { weight: 2, begin: moveLeader },
  'no leader': { weight: 2, begin: loseLeader },
  'unreadable partition': { weight: 2, begin: makeUnreadable },
  'delete stored records': { weight: 2, begin: deleteStored },
};

/** {@link WRITER_FAULTS}, and one that loses records which Kafka has acknowledged. */
export const LOSING_FAULTS: FaultTable<World> = { ...WRITER_FAULTS, 'cut off log': { weight: 1, begin: cutOffLog } };

function killWriter(world: World, fault: Fault) {
  const writer = chosen(world.writers, fault);
  writer.kill();
  return { name: `${writer.name} is killed`, end: () => writer.start() };
}

function freezeWriter(world: World, fault: Fault) {
  const writer = chosen(world.writers, fault);
  writer.freeze();
  return { name: `${writer.name} is frozen`, end: () => writer.thaw() };
}

const LINK_FAULTS: readonly LinkFault[] = ['down', 'silent', 'cut', 'cut', 'slow'];

function breakLink(world: World, writer: WriterPlace, server: string, { manner }: Fault) {
  const how = LINK_FAULTS[Math.floor(manner * LINK_FAULTS.length)] as LinkFault;
  world.network.set(writer.name, server, how);
  const end = () => world.network.set(writer.name, server, undefined);
  return { name: `the connection of ${writer.name} to ${server} is ${how}`, end };
}

function breakClickHouse(world: World, fault: Fault) {
  return breakLink(world, chosen(world.writers, fault), CLICKHOUSE, fault);
}

function breakKafka(world: World, fault: Fault) {
  const writer = chosen(world.writers, fault);
  const node = world.kafka.nodes[Math.floor(fault.manner * 97) % world.kafka.nodes.length] as Node;
  return breakLink(world, writer, serverOf(node), fault);
}

function stopClickHouse({ clickhouse }: World) {
  clickhouse.stop();
  return { name: 'ClickHouse is stopped', end: () => clickhouse.start() };
}

function slowClickHouse({ clickhouse }: World, { manner }: Fault) {
  clickhouse.slownessMs = 50 + manner ** 2 * 6_000;
  const end = () => {
    clickhouse.slownessMs = HEALTHY_MS;
  };
  return { name: `ClickHouse takes up to ${Math.floor(clickhouse.slownessMs)} ms for a statement`, end };
}

function refuseStatements({ clickhouse }: World, { manner }: Fault) {
  clickhouse.refusals = 0.1 + manner / 2;
  const end = () => {
    clickhouse.refusals = 0;
  };
  return { name: `ClickHouse refuses ${Math.floor(clickhouse.refusals * 100)} % of statements`, end };
}

function stopNode({ kafka }: World, fault: Fault) {
  const node = chosen(kafka.nodes, fault);
  kafka.stop(node);
  return { name: `${serverOf(node)} is stopped`, end: () => kafka.start(node) };
}

function rebalance({ kafka }: World) {
  kafka.group.rebalance();
  return { name: 'the group rebalances' };
}

function loseCoordinator({ kafka }: World) {
  kafka.coordinator = -1;
  const end = () => {
    if (kafka.coordinator < 0) kafka.coordinator = kafka.someNodeId;
  };
  return { name: 'the group has no coordinator', end };
}

function forgetGroup({ kafka }: World) {
  kafka.group.forget();
  return { name: 'Kafka forgets the group' };
}

function loseCommits({ kafka }: World, { target, manner }: Fault) {
  const names = [...kafka.group.offsets.keys()];
  const name = names[Math.floor(target * names.length)];
  if (name === undefined) return { name: 'no commits are lost' };
  const before = kafka.group.offsets.get(name) ?? 0;
  kafka.group.offsets.set(name, Math.floor(before * manner));
  // The members find out when they join again.
  kafka.group.rebalance();
  return { name: `commits of ${name} are lost: ${before} becomes ${kafka.group.offsets.get(name)}` };
}

function moveLeader({ kafka }: World, fault: Fault) {
  const log = chosen(kafka.logs, fault);
  const up = kafka.nodes.filter(({ isUp }) => isUp);
  log.elect(up[Math.floor(fault.manner * up.length)]?.nodeId ?? -1);
  return { name: `kafka ${log.leader} leads ${nameOf(log)}` };
}

function loseLeader({ kafka }: World, fault: Fault) {
  const log = chosen(kafka.logs, fault);
  log.elect(-1);
  const end = () => {
    if (log.leader < 0) log.elect(kafka.someNodeId);
  };
  return { name: `${nameOf(log)} has no leader`, end };
}

function makeUnreadable({ kafka }: World, fault: Fault) {
  const name = nameOf(chosen(kafka.logs, fault));
  kafka.unreadable.add(name);
  return { name: `${name} cannot be read`, end: () => kafka.unreadable.delete(name) };
}

/** Retention deletes what is stored and committed already. */
function deleteStored({ kafka, clickhouse, oracle }: World, fault: Fault) {
  const log = chosen(kafka.logs, fault);
  // Offsets of a log that was cut off say nothing about what is stored of it.
  if (oracle.hasLost) return { name: 'nothing is deleted' };
  const stored = clickhouse.tables.positions.get(nameOf(log))?.nextOffset ?? 0;
  const committed = kafka.group.offsets.get(nameOf(log)) ?? 0;
  log.deleteBefore(Math.floor(Math.min(stored, committed) * fault.manner));
  return { name: `${nameOf(log)} begins at ${log.low}` };
}

function cutOffLog({ kafka, oracle }: World, fault: Fault) {
  const log = chosen(kafka.logs, fault);
  const lost = log.cutOff(log.high - Math.min(log.high - log.low, 1 + Math.floor(fault.manner * 4)));
  oracle.addLost(log, lost);
  return { name: `the log of ${nameOf(log)} is cut off at ${log.high}` };
}
