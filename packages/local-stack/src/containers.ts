import { setTimeout as sleep } from 'node:timers/promises';
import { GenericContainer, getContainerRuntimeClient, Network, type StartedTestContainer, Wait } from 'testcontainers';
import { profileXml } from './clickhouse-config.ts';
import { probeKafka } from './kafka-probe.ts';
import { findFreePorts } from './ports.ts';

const KAFKA_IMAGE = 'apache/kafka:4.3.0';
const CLICKHOUSE_IMAGE = 'clickhouse/clickhouse-server:26.7';
const KAFKA_READY_TIMEOUT_MS = 60_000;

/** Engines from the official images. */
export interface ContainerStack {
  /** `host:port` of every broker. */
  readonly kafkaBrokers: readonly string[];
  /** User `default`, without a password. */
  readonly clickhouseUrl: string;
  stop(): Promise<void>;
}

/** Whether a container runtime answers. */
export async function hasContainerRuntime(): Promise<boolean> {
  return getContainerRuntimeClient().then(
    () => true,
    () => false,
  );
}

/** Starts one or three Kafka brokers and a ClickHouse as containers; the data goes with them. */
export async function startContainers(
  brokers: 1 | 3,
  clickhouseProfile: Readonly<Record<string, string>>,
): Promise<ContainerStack> {
  await using started = new AsyncDisposableStack();
  const network = started.use(await new Network().start());
  const ports = await findFreePorts(brokers);
  const kafkas = ports.map((port, index) => startBroker(network.getName(), index + 1, brokers, port));
  const [clickhouse, ...others] = await Promise.all([startClickHouseContainer(clickhouseProfile), ...kafkas]);
  for (const container of [clickhouse, ...others]) started.use(container);
  const kafkaBrokers = ports.map((port) => `127.0.0.1:${port}`);
  for (const broker of kafkaBrokers) await waitForBroker(broker, brokers);
  const running = started.move();
  return {
    kafkaBrokers,
    clickhouseUrl: `http://${clickhouse.getHost()}:${clickhouse.getMappedPort(8123)}`,
    stop: () => running.disposeAsync(),
  };
}

function startClickHouseContainer(profile: Readonly<Record<string, string>>): Promise<StartedTestContainer> {
  return new GenericContainer(CLICKHOUSE_IMAGE)
    .withEnvironment({ CLICKHOUSE_SKIP_USER_SETUP: '1', TZ: 'UTC' })
    .withCopyContentToContainer([
      { content: profileXml(profile), target: '/etc/clickhouse-server/users.d/account.xml' },
    ])
    .withExposedPorts(8123)
    .withWaitStrategy(Wait.forHttp('/ping', 8123))
    .start();
}

/** The port on the host is fixed beforehand, because the broker has to advertise it. */
function startBroker(
  networkName: string,
  nodeId: number,
  brokers: number,
  port: number,
): Promise<StartedTestContainer> {
  const nodes = Array.from({ length: brokers }, (_, index) => `${index + 1}@kafka-${index + 1}:9093`);
  const replicas = String(brokers);
  const inSyncMin = brokers === 3 ? '2' : '1';
  return new GenericContainer(KAFKA_IMAGE)
    .withNetworkMode(networkName)
    .withNetworkAliases(`kafka-${nodeId}`)
    .withExposedPorts({ container: 9092, host: port })
    .withEnvironment({
      CLUSTER_ID: '4L6g3nShT-eMCtK--X86sw',
      KAFKA_NODE_ID: String(nodeId),
      KAFKA_PROCESS_ROLES: 'broker,controller',
      KAFKA_CONTROLLER_QUORUM_VOTERS: nodes.join(','),
      KAFKA_LISTENERS: 'CLIENT://:9092,INTERNAL://:19092,CONTROLLER://:9093',
      KAFKA_ADVERTISED_LISTENERS: `CLIENT://127.0.0.1:${port},INTERNAL://kafka-${nodeId}:19092`,
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

async function waitForBroker(broker: string, clusterSize: number): Promise<void> {
  const deadline = AbortSignal.timeout(KAFKA_READY_TIMEOUT_MS);
  for (;;) {
    try {
      return await probeKafka(broker, clusterSize);
    } catch (error) {
      if (deadline.aborted) throw new Error(`Kafka at ${broker} was not ready in time`, { cause: error });
      await sleep(100);
    }
  }
}
