import type { KafkaConfig } from '@sluice/shared/config';
import { type KafkaReplicas, shortcomings } from '@sluice/shared/kafka/topic-durability';
import { readNewTopic } from '@sluice/shared/kafka/topics';
import type { Admin } from 'kafkajs';
import { type Finding, note, ok, wrong } from './check.ts';

/** Says what a `202` would rest on with topics of rows that are created now. @param absent the topics that are missing */
export async function foreseeReplicas(admin: Admin, config: KafkaConfig, absent: readonly string[]): Promise<Finding> {
  const { brokers } = await admin.describeCluster();
  const { replicas, inSyncMin } = await readNewTopic(admin, config);
  if (replicas === undefined)
    return note(
      `what ${absent.join(', ')} would have cannot be seen without the right DescribeConfigs on the cluster`,
      'Set KAFKA_REPLICATION_FACTOR=3 where there are three brokers, and run doctor again when a service has created them.',
    );
  const foreseen = { brokers: brokers.length, topics: absent.map((topic) => ({ topic, replicas, inSyncMin })) };
  const problems = shortcomings(foreseen, 'would have');
  if (problems.length === 0) return ok(`new topics would have: ${describeReplicas(foreseen)}`);
  return wrong(
    problems.join('; '),
    'Set KAFKA_REPLICATION_FACTOR=3 for all services before their first start: docs/operate/durability.md#kafka.',
  );
}

export function describeReplicas({ brokers, topics }: KafkaReplicas): string {
  const found = topics.map(({ topic, replicas, inSyncMin }) => `${topic} ${replicas}, of which ${inSyncMin} in sync`);
  return `${found.join('; ')}${brokers === 1 ? ' on the only broker: a 202 rests on one machine' : ''}`;
}
