import { partsTooLarge } from '@sluice/submissions/reading/body-problems';
import type { PartitionRows } from '@sluice/submissions/rows/partition-rows';
import type { FastifyRequest } from 'fastify';
import { eventLogUnavailable } from '../http/problems.ts';
import { PublishTimeout, type RowPublisher, RowsRefused } from '../kafka/row-publisher.ts';

/**
 * Publishes the rows of one request.
 *
 * @throws {Problem} `event_log_unavailable` when Kafka does not acknowledge them in time, `body_too_large` when it takes no
 *   message as large as one of them
 */
export async function publishRows(
  publisher: RowPublisher,
  { apiKey: { workspace }, span }: FastifyRequest,
  rows: readonly PartitionRows[],
  timeoutMs?: number,
): Promise<void> {
  try {
    await publisher.publish({ workspace, span }, rows, timeoutMs);
  } catch (error) {
    if (error instanceof PublishTimeout) throw eventLogUnavailable(error);
    if (error instanceof RowsRefused) throw partsTooLarge([''], 'has a part that is larger than the event log takes');
    throw error;
  }
}
