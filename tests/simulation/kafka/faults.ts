import { nameOf } from '@sluice/storage/protocol/position';
import { type Begin, type Choice, chosen, type FaultTable } from '../world/faults.ts';
import type { PartitionLog } from './partition-log.ts';
import { type SimulatedKafka, serverOf } from './simulated-kafka.ts';

interface World {
  readonly kafka: SimulatedKafka;
}

/** What goes wrong in a cluster, whoever uses it. */
export const KAFKA_FAULTS: FaultTable<World> = {
  'stop Kafka node': { weight: 2, begin: stopNode },
  'move leader': { weight: 2, begin: ofLog(moveLeader) },
  'no leader': { weight: 2, begin: ofLog(loseLeader) },
  'unreadable partition': { weight: 2, begin: ofLog(makeUnreadable) },
};

/** What goes wrong for those who produce. */
export const PRODUCE_FAULTS: FaultTable<World> = {
  'slow replicas': { weight: 3, begin: ofLog((log) => setReplicas(log, 'slow')) },
  'too few replicas': { weight: 3, begin: ofLog((log) => setReplicas(log, 'too few')) },
};

/** A fault of one log. Before the topics are created there is none. */
function ofLog(begin: (log: PartitionLog, kafka: SimulatedKafka, fault: Choice) => ReturnType<Begin<World>>) {
  return ({ kafka }: World, fault: Choice) =>
    kafka.logs.length === 0 ? { name: 'nothing, for want of a topic' } : begin(chosen(kafka.logs, fault), kafka, fault);
}

function stopNode({ kafka }: World, fault: Choice) {
  const node = chosen(kafka.nodes, fault);
  kafka.stop(node);
  return { name: `${serverOf(node)} is stopped`, end: () => kafka.start(node) };
}

function moveLeader(log: PartitionLog, kafka: SimulatedKafka, { manner }: Choice) {
  const up = kafka.nodes.filter(({ isUp }) => isUp);
  log.elect(up[Math.floor(manner * up.length)]?.nodeId ?? -1);
  return { name: `kafka ${log.leader} leads ${nameOf(log)}` };
}

function loseLeader(log: PartitionLog, kafka: SimulatedKafka) {
  log.elect(-1);
  const end = () => {
    if (log.leader < 0) log.elect(kafka.someNodeId);
  };
  return { name: `${nameOf(log)} has no leader`, end };
}

function makeUnreadable(log: PartitionLog, kafka: SimulatedKafka) {
  const name = nameOf(log);
  kafka.unreadable.add(name);
  return { name: `${name} cannot be read or written`, end: () => kafka.unreadable.delete(name) };
}

function setReplicas(log: PartitionLog, replicas: 'slow' | 'too few') {
  log.replicas = replicas;
  const end = () => {
    log.replicas = 'in sync';
  };
  return { name: `the replicas of ${nameOf(log)} are ${replicas}`, end };
}
