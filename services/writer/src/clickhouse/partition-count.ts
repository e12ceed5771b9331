import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { KafkaConfig } from '@sluice/shared/config';
import { topicNames } from '@sluice/shared/kafka/topics';
import { STATEMENTS } from './statements.ts';

/** KAFKA_PARTITIONS is not the number of partitions over which the stored rows were spread. */
export class PartitionCountMismatch extends Error {
  override readonly name = 'PartitionCountMismatch';
}

/**
 * Compares KAFKA_PARTITIONS with the number of partitions under which the rows in ClickHouse were stored. The first
 * writer records it.
 *
 * @throws {PartitionCountMismatch} when they differ
 * @throws ClickHouse's errors
 */
export async function checkPartitionCount(client: ClickHouseClient, config: KafkaConfig): Promise<void> {
  const topics = Object.values(topicNames(config));
  const { KAFKA_PARTITIONS: partitions } = config;
  await client.command({
    query: STATEMENTS['record-topic-partitions'].sql,
    query_params: { topics, partitions },
  });
  const result = await client.query({
    query: STATEMENTS['read-topic-partitions'].sql,
    query_params: { topics },
    format: 'JSONEachRow',
  });
  for (const recorded of await result.json<{ topic: string; partitions: number }>()) {
    if (recorded.partitions === partitions) continue;
    throw new PartitionCountMismatch(
      `the stored rows of ${recorded.topic} were spread over ${recorded.partitions} partitions, and KAFKA_PARTITIONS is ` +
        `${partitions}: set it to ${recorded.partitions} for all services; docs/operate/configuration.md says how to change it`,
    );
  }
}
