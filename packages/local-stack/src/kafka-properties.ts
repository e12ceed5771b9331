export interface BrokerAddress {
  readonly nodeId: number;
  readonly port: number;
  readonly controllerPort: number;
  /** The port that clients, and the other brokers, are told to connect to. */
  readonly advertisedPort: number;
  /** The ports of {@link KafkaListener}s, by their names. Default none. */
  readonly listenerPorts?: Readonly<Record<string, number>>;
}

/** One more listener for clients, whose connections are encrypted or need a login. */
export interface KafkaListener {
  readonly protocol: 'SSL' | 'SASL_SSL' | 'SASL_PLAINTEXT';
  /** Its own settings, without their prefix `listener.name.<name>.`. */
  readonly settings: BrokerSettings;
}

/** Listeners by their names, which Kafka wants in upper case. */
export type KafkaListeners = Readonly<Record<string, KafkaListener>>;

/** Names and values of server.properties. */
export type BrokerSettings = Readonly<Record<string, string | number | boolean>>;

const HOST = '127.0.0.1';

/**
 * The server.properties of one broker of a cluster on this machine. Each node is broker and KRaft controller. `settings`
 * override the others.
 */
export function brokerProperties(
  self: BrokerAddress,
  cluster: readonly BrokerAddress[],
  logDir: string,
  settings: BrokerSettings = {},
  listeners: KafkaListeners = {},
): string {
  const replicas = Math.min(3, cluster.length);
  const inSyncMin = replicas === 3 ? 2 : 1;
  const more = Object.keys(listeners).map((name) => `,${name}://${HOST}:${self.listenerPorts?.[name]}`);
  const protocols = Object.entries(listeners).map(([name, { protocol }]) => `,${name}:${protocol}`);
  const voters = cluster.map((node) => `${node.nodeId}@${HOST}:${node.controllerPort}`).join(',');
  return formatProperties({
    'process.roles': 'broker,controller',
    'node.id': self.nodeId,
    'controller.quorum.voters': voters,
    listeners: `PLAINTEXT://${HOST}:${self.port},CONTROLLER://${HOST}:${self.controllerPort}${more.join('')}`,
    'advertised.listeners': `PLAINTEXT://${HOST}:${self.advertisedPort}${more.join('')}`,
    'controller.listener.names': 'CONTROLLER',
    'inter.broker.listener.name': 'PLAINTEXT',
    'listener.security.protocol.map': `PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT${protocols.join('')}`,
    'log.dirs': logDir,
    'auto.create.topics.enable': false,
    'default.replication.factor': replicas,
    'min.insync.replicas': inSyncMin,
    'offsets.topic.replication.factor': replicas,
    'offsets.topic.num.partitions': 4,
    'transaction.state.log.replication.factor': replicas,
    'transaction.state.log.min.isr': inSyncMin,
    'transaction.state.log.num.partitions': 4,
    'share.coordinator.state.topic.replication.factor': replicas,
    'share.coordinator.state.topic.min.isr': inSyncMin,
    'log.retention.hours': 168,
    'log.segment.bytes': 128 * 1024 * 1024,
    // The default reserves 128 MiB of heap for a handful of small compacted topics.
    'log.cleaner.dedupe.buffer.size': 8 * 1024 * 1024,
    // An idle broker takes two thirds of the CPU time that it takes with the defaults: a record without content twice a second,
    // and eight threads that look for requests three times a second each.
    'metadata.max.idle.interval.ms': 10_000,
    'num.io.threads': 2,
    'num.network.threads': 2,
    'group.initial.rebalance.delay.ms': 0,
    'group.min.session.timeout.ms': 1000,
    // A killed broker can register again only when its last session has ended: after 9 s by default. A single broker
    // loses nothing by a short session when it is too busy for its heartbeat; one of three would lose its partitions.
    'broker.heartbeat.interval.ms': 500,
    'broker.session.timeout.ms': cluster.length === 1 ? 1500 : 4000,
    ...settings,
    ...Object.fromEntries(Object.entries(listeners).flatMap(([name, listener]) => prefixed(name, listener.settings))),
  });
}

function prefixed(listener: string, settings: BrokerSettings) {
  const prefix = `listener.name.${listener.toLowerCase()}.`;
  return Object.entries(settings).map(([name, value]) => [`${prefix}${name}`, value] as const);
}

/** Java's properties format: backslashes are doubled, characters beyond ASCII written as \uXXXX. */
export function formatProperties(values: BrokerSettings): string {
  const lines = Object.entries(values).map(([name, value]) => `${name}=${escapeValue(String(value))}`);
  return `${lines.join('\n')}\n`;
}

function escapeValue(value: string): string {
  return value
    .replaceAll('\\', '\\\\')
    .replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
