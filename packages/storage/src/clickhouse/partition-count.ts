import { randomUUID } from 'node:crypto';
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
 * @param looksFirst whether nothing is to be sent to record it where it is recorded: a replica may be read-only. Default: no
 * @throws {PartitionCountMismatch} when they differ
 * @throws ClickHouse's errors
 */
export async function checkPartitionCount(
  client: ClickHouseClient,
  config: KafkaConfig,
  looksFirst = false,
): Promise<void> {
  const topics = Object.values(topicNames(config));
  const { KAFKA_PARTITIONS: partitions } = config;
  const isRecorded = looksFirst && (await readPartitionCounts(client, topics)).length >= topics.length;
  if (!isRecorded) {
    await client.command({
      query: STATEMENTS['record-topic-partitions'].sql,
      query_params: { topics, partitions },
    });
  }
  for (const recorded of await readPartitionCounts(client, topics)) {
    if (recorded.partitions === partitions) continue;
    throw new PartitionCountMismatch(
      `the stored rows of ${recorded.topic} were spread over ${recorded.partitions} partitions, and KAFKA_PARTITIONS is ` +
        `${partitions}: set it to ${recorded.partitions} for all services; docs/operate/configuration.md says how to change it`,
    );
  }
}

/** Over how many partitions the stored rows of a topic were spread. */
export interface PartitionCount {
  readonly topic: string;
  readonly partitions: number;
}

/** Returns what is recorded of the topics: of one whose growth was interrupted, both numbers. @throws ClickHouse's errors */
export async function readPartitionCounts(
  client: ClickHouseClient,
  topics: readonly string[],
): Promise<readonly PartitionCount[]> {
  const result = await client.query({
    query: STATEMENTS['read-topic-partitions'].sql,
    query_params: { topics },
    format: 'JSONEachRow',
  });
  return await result.json<PartitionCount>();
}

/**
 * Records that the rows of topics are spread over more partitions from now on. While both numbers are recorded, no
 * writer stores.
 *
 * @throws ClickHouse's errors; the call may be repeated
 */
export async function recordGrowth(
  client: ClickHouseClient,
  topics: readonly string[],
  partitions: number,
): Promise<void> {
  for (const step of ['record-grown-topics', 'forget-smaller-topics'] as const) {
    const { name, sql } = STATEMENTS[step];
    await client.command({
      query: sql,
      query_id: `sluice-writer/grow-partitions/${name}/${randomUUID()}`,
      query_params: { topics, partitions },
    });
  }
}
