import { nameOf } from '@sluice/storage/protocol/position';
import { KAFKA_FAULTS, PRODUCE_FAULTS } from '../kafka/faults.ts';
import { type Node, type SimulatedKafka, serverOf } from '../kafka/simulated-kafka.ts';
import { breakLink, type Choice, chosen, type FaultTable, HOLDING, holdRequest } from '../world/faults.ts';
import type { Network, Request } from '../world/network.ts';
import type { IngestPlace } from './ingest-place.ts';
import type { IngestSide } from './ingest-side.ts';

interface World {
  readonly network: Network;
  readonly kafka: SimulatedKafka;
  readonly side: IngestSide;
}

/** What goes wrong with ingest-apis and their clients. */
export const CLIENT_FAULTS: FaultTable<World> = {
  ...PRODUCE_FAULTS,
  [HOLDING]: { weight: 8, begin: holdRequest },
  'kill ingest-api': { weight: 3, begin: killIngest },
  'stop ingest-api': { weight: 2, begin: stopIngest },
  'freeze ingest-api': { weight: 3, begin: freezeIngest },
  'set clock': { weight: 3, begin: setClock },
  'break connection of ingest-api to Kafka': { weight: 7, begin: breakKafka },
  'break connection of a client': { weight: 5, begin: breakClient },
};

export const INGEST_FAULTS: FaultTable<World> = { ...KAFKA_FAULTS, ...CLIENT_FAULTS };

/** What Kafka loses of what it has acknowledged. */
export const LOSING_FAULTS: FaultTable<World> = { 'cut off log': { weight: 1, begin: cutOffLog } };

/** What ingest-apis and clients ask for, each with how often faults wait for it, compared with others. */
export const REQUESTS_OF_INGEST: Readonly<Record<string, number>> = {
  produce: 10,
  submit: 3,
  metadata: 2,
  connect: 1,
  createTopics: 1,
};

function killIngest({ side }: World, choice: Choice, request?: Request) {
  const place = chosenIngest(side, choice, request);
  place.kill();
  return { name: `${place.name} is killed`, end: () => place.start() };
}

function stopIngest({ side }: World, choice: Choice, request?: Request) {
  const place = chosenIngest(side, choice, request);
  place.stop();
  return { name: `${place.name} is told to stop` };
}

function freezeIngest({ side }: World, choice: Choice, request?: Request) {
  const place = chosenIngest(side, choice, request);
  place.freeze();
  return { name: `${place.name} is frozen`, end: () => place.thaw() };
}

function setClock({ side }: World, choice: Choice, request?: Request) {
  const place = chosenIngest(side, choice, request);
  // By 5 s to days, forwards or back: no comparison takes it for right.
  const aheadMs = Math.round((choice.manner < 0.5 ? -1 : 1) * 5_000 * 10 ** (4 * ((choice.manner * 2) % 1)));
  side.oracle.causes.clockWasSet = true;
  place.setClock(aheadMs);
  return { name: `the clock of ${place.name} is set by ${aheadMs} ms`, end: () => place.setClock(0) };
}

function breakKafka({ side, kafka, network }: World, choice: Choice, request?: Request) {
  const node = kafka.nodes[Math.floor(choice.manner * 97) % kafka.nodes.length] as Node;
  return breakLink(network, chosenIngest(side, choice, request).name, serverOf(node), choice);
}

function breakClient({ side, network }: World, choice: Choice) {
  const place = side.ingests[Math.floor(choice.manner * 97) % side.ingests.length];
  return breakLink(network, chosen(side.clients, choice).name, place?.name ?? '', choice);
}

function cutOffLog({ side, kafka }: World, choice: Choice) {
  const logs = kafka.logs.filter(({ topic, high }) => topic !== side.clockTopic && high > 0);
  if (logs.length === 0) return { name: 'nothing is cut off' };
  const log = chosen(logs, choice);
  const lost = log.cutOff(log.high - Math.min(log.high - log.low, 1 + Math.floor(choice.manner * 4)));
  side.oracle.addLost(lost);
  return { name: `the log of ${nameOf(log)} is cut off at ${log.high}` };
}

/** Mostly the one whose request triggers the fault. */
function chosenIngest({ ingests }: IngestSide, { target }: Choice, request: Request | undefined): IngestPlace {
  const own = ingests.find(({ name }) => name === request?.process?.name);
  if (own && target < 0.7) return own;
  return chosen(ingests, { target: own ? (target - 0.7) / 0.3 : target, manner: 0 });
}
