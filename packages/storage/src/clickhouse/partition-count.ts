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
 * writer records it, at each replica if there are several.
 *
 * @param others of the other replicas of the database. Default: there are none
 * @throws {PartitionCountMismatch} when they differ
 * @throws ClickHouse's errors
 */
export async function checkPartitionCount(
  client: ClickHouseClient,
  config: KafkaConfig,
  others?: readonly ClickHouseClient[],
): Promise<void> {
  const topics = Object.values(topicNames(config));
  const { KAFKA_PARTITIONS: partitions } = config;
  const all = [client, ...(others ?? [])];
  // A replica may not have yet what another one has: before any records a number, all are asked for another one.
  const counts = others === undefined ? [[]] : await Promise.all(all.map((one) => readPartitionCounts(one, topics)));
  requireCount(counts.flat(), partitions);
  for (const [index, one] of all.entries()) {
    // Nothing is sent where it is recorded: a replica may be read-only.
    if ((counts[index]?.length ?? 0) < topics.length) {
      await one.command({
        query: STATEMENTS['record-topic-partitions'].sql,
        query_params: { topics, partitions },
      });
    }
    requireCount(await readPartitionCounts(one, topics), partitions);
  }
}

/** @throws {PartitionCountMismatch} when a number is recorded that is another one */
function requireCount(counts: readonly PartitionCount[], partitions: number): void {
  for (const recorded of counts) {
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
