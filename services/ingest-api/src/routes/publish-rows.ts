import type { PartitionRows } from '@sluice/submissions/rows/row-gatherer';
import { eventLogUnavailable } from '../http/problems.ts';
import { PublishTimeout, type RowPublisher } from '../kafka/row-publisher.ts';

/**
 * Publishes the rows of one request.
 *
 * @throws {Problem} `event_log_unavailable` when Kafka does not acknowledge them in time
 */
export async function publishRows(
  publisher: RowPublisher,
  workspace: string,
  rows: readonly PartitionRows[],
  timeoutMs?: number,
): Promise<void> {
  try {
    await publisher.publish(workspace, rows, timeoutMs);
  } catch (error) {
    throw error instanceof PublishTimeout ? eventLogUnavailable(error) : error;
  }
}
