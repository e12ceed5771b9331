import { setTimeout as sleep } from 'node:timers/promises';
import {
  GenericContainer,
  getContainerRuntimeClient,
  Network,
  type StartedNetwork,
  type StartedTestContainer,
  Wait,
} from 'testcontainers';
import { type AddedUsers, addedUsersXml } from './clickhouse-config.ts';
import { probeKafka } from './kafka-probe.ts';
import { findFreePorts } from './ports.ts';

/** The images of docker-compose.yml, pinned by version and digest. */
export const KAFKA_IMAGE = 'apache/kafka:4.3.0@sha256:0be4c9eb3565733612d2836d65636fd611a219ebcf5b4162e5ac259ea0ecb907';
export const CLICKHOUSE_IMAGE =
  'clickhouse/clickhouse-server:26.7.3.19@sha256:f90a77560f72b10802106ee49e9870e41668cbc496e280c3911f6e3b216657f3';

const KAFKA_READY_TIMEOUT_MS = 60_000;

/** Engines from the official images. */
export interface ContainerStack {
  /** `host:port` of every broker. */
  readonly kafkaBrokers: readonly string[];
  /** The administrator is `default` without a password. */
  readonly clickhouseUrl: string;
  stop(): Promise<void>;
}

/** Whether a container runtime answers. It may still have no images, and no way to pull them. */
export async function hasContainerRuntime(): Promise<boolean> {
  return getContainerRuntimeClient().then(
    () => true,
    () => false,
  );
}

/**
 * Starts one or three Kafka brokers and a ClickHouse as containers. Their data is removed with them.
 *
 * @throws what the runtime says when an image or a container is not to be had. Nothing is left running then.
 */
export async function startContainers(brokers: 1 | 3, users: AddedUsers): Promise<ContainerStack> {
  const host = await runtimeHost();
  await using started = new AsyncDisposableStack();
  const network = started.use(await new Network().start());
  const ports = await findFreePorts(brokers);
  const addresses = ports.map((port) => `${host}:${port}`);
  const clickhouse = startClickHouse(users, started);
  const kafkas = addresses.map((address, index) => startBroker(address, index + 1, brokers, network, started));
  // Not Promise.all: a container that is still starting when another has failed could not be removed.
  const outcomes = await Promise.allSettled([clickhouse, ...kafkas]);
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
  await Promise.all(addresses.map((address) => waitForBroker(address, brokers)));
  const clickhousePort = (await clickhouse).getMappedPort(8123);
  const running = started.move();
  return {
    kafkaBrokers: addresses,
    clickhouseUrl: `http://${host}:${clickhousePort}`,
    stop: () => running.disposeAsync(),
  };
}

/** Where the runtime publishes ports: the host of `DOCKER_HOST`, or this machine. */
async function runtimeHost(): Promise<string> {
  const { host } = (await getContainerRuntimeClient()).info.containerRuntime;
  // Not "localhost", which may be ::1 for some clients and 127.0.0.1 for others.
  return host === 'localhost' ? '127.0.0.1' : host;
}

/** A container that `cleanup` removes from the moment it is created, whether it starts or not. */
class EngineContainer extends GenericContainer {
  readonly #cleanup: AsyncDisposableStack;

  constructor(image: string, cleanup: AsyncDisposableStack) {
    super(image);
    this.#cleanup = cleanup;
  }

  protected override async containerCreated(id: string): Promise<void> {
    this.#cleanup.defer(() => removeContainer(id));
  }
}

async function removeContainer(id: string): Promise<void> {
  const runtime = await getContainerRuntimeClient();
  try {
    await runtime.container.getById(id).remove({ force: true, v: true });
  } catch (error) {
    // testcontainers itself removes a container that does not become ready.
    const { statusCode } = error as { readonly statusCode?: number };
    if (statusCode !== 404) throw error;
  }
}

async function startClickHouse(users: AddedUsers, cleanup: AsyncDisposableStack): Promise<StartedTestContainer> {
  const content = await addedUsersXml(users);
  return await new EngineContainer(CLICKHOUSE_IMAGE, cleanup)
    .withEnvironment({ CLICKHOUSE_SKIP_USER_SETUP: '1', TZ: 'UTC' })
    .withCopyContentToContainer([{ content, target: '/etc/clickhouse-server/users.d/accounts.xml' }])
    .withExposedPorts(8123)
    .withWaitStrategy(Wait.forHttp('/ping', 8123))
    .start();
}

/** @param address `host:port` that clients are told. The port is chosen before the start, because of that. */
function startBroker(
  address: string,
  nodeId: number,
  brokers: number,
  network: StartedNetwork,
  cleanup: AsyncDisposableStack,
): Promise<StartedTestContainer> {
  const nodes = Array.from({ length: brokers }, (_, index) => `${index + 1}@kafka-${index + 1}:9093`);
  const replicas = String(brokers);
  const inSyncMin = brokers === 3 ? '2' : '1';
  return new EngineContainer(KAFKA_IMAGE, cleanup)
    .withNetworkMode(network.getName())
    .withNetworkAliases(`kafka-${nodeId}`)
    .withExposedPorts({ container: 9092, host: Number(address.split(':').at(-1)) })
    .withEnvironment({
      CLUSTER_ID: '4L6g3nShT-eMCtK--X86sw',
      KAFKA_NODE_ID: String(nodeId),
      KAFKA_PROCESS_ROLES: 'broker,controller',
      KAFKA_CONTROLLER_QUORUM_VOTERS: nodes.join(','),
      KAFKA_LISTENERS: 'CLIENT://:9092,INTERNAL://:19092,CONTROLLER://:9093',
      KAFKA_ADVERTISED_LISTENERS: `CLIENT://${address},INTERNAL://kafka-${nodeId}:19092`,
      KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: 'CLIENT:PLAINTEXT,INTERNAL:PLAINTEXT,CONTROLLER:PLAINTEXT',
      KAFKA_INTER_BROKER_LISTENER_NAME: 'INTERNAL',
      KAFKA_CONTROLLER_LISTENER_NAMES: 'CONTROLLER',
      KAFKA_AUTO_CREATE_TOPICS_ENABLE: 'false',
      KAFKA_DEFAULT_REPLICATION_FACTOR: replicas,
      KAFKA_MIN_INSYNC_REPLICAS: inSyncMin,
      KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR: replicas,
      KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR: replicas,
      KAFKA_TRANSACTION_STATE_LOG_MIN_ISR: inSyncMin,
      KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS: '0',
      KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS: '1000',
    })
    .withWaitStrategy(Wait.forListeningPorts())
    .start();
}

async function waitForBroker(address: string, clusterSize: number): Promise<void> {
  const deadline = AbortSignal.timeout(KAFKA_READY_TIMEOUT_MS);
  for (;;) {
    try {
      return await probeKafka(address, clusterSize);
    } catch (error) {
      if (deadline.aborted) {
        throw new Error(`Kafka at ${address} was not ready after ${KAFKA_READY_TIMEOUT_MS} ms`, { cause: error });
      }
      await sleep(100);
    }
  }
}
