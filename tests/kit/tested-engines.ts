import { KAFKA_VERSION, OLDER_KAFKA_VERSION } from '@sluice/local-stack/kafka-libs';

/**
 * The engines that tests start, by the names of their rows in docs/operate/engines.md. Those that are no default are started by this
 * list alone, and `tested-engines.test.ts` compares it with the page.
 */
export const TESTED_KAFKAS = {
  newest: { name: 'Apache Kafka 4.3', version: KAFKA_VERSION },
  older: { name: 'Apache Kafka 3.9', version: OLDER_KAFKA_VERSION },
  /** Another implementation of the protocol, in memory: `kfake.ts`. */
  kfake: { name: 'kfake of franz-go' },
} as const;

export const TESTED_CLICKHOUSES = {
  one: { name: 'one server, 26.7' },
  several: { name: '[mirrors, and ranges](servers.md), 26.7' },
  /** Over ZooKeeper: `replicas.ts`. */
  replicas: { name: '[replicated tables](existing-cluster.md#replicated-tables), 26.7' },
} as const;
