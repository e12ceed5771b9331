import { NO_PAUSE } from '../pause.ts';
import { TIMESTAMP_AHEAD_MS_MAX } from '../reading/submission-limits.ts';
import { createRowGatherer, type PartitionRows } from '../rows/row-gatherer.ts';
import type { CallRoute } from './call.ts';
import { readCallOutline } from './call-outline.ts';
import { type CallRowsOptions, gatherCalls } from './call-rows.ts';
import type { RejectedCall } from './rejected-call.ts';

export interface ReplayOptions extends Pick<CallRowsOptions, 'callBytesMax' | 'propertiesMax' | 'now'> {
  /** The number of partitions of each topic. */
  readonly partitionCount: number;
  /** Gives an event without messageId the same uuid each time. */
  readonly id: string;
}

/**
 * Creates the rows of a call that was rejected, as if it were taken when it came. Returns a sentence when it cannot be
 * taken now either.
 *
 * @throws {Problem} `malformed_json`
 */
export async function rowsOfRejectedCall(
  { call, context, type, workspace_id: workspace, received_at: version, cut }: RejectedCall,
  { id, partitionCount, ...limits }: ReplayOptions,
): Promise<readonly PartitionRows[] | string> {
  if (cut) return 'Only the beginning of the call is kept.';
  const route: CallRoute = type ?? 'batch';
  const text = type ? call : `{"batch":[${call}]${context === undefined ? '' : `,"context":${context}`}}`;
  const { callBytesMax, now } = limits;
  const outlineLimits = { callsMax: 1, bytesMax: callBytesMax, timestampMsMax: now() + TIMESTAMP_AHEAD_MS_MAX };
  const outline = await readCallOutline(Buffer.from(text), route, outlineLimits, NO_PAUSE);
  const gatherer = createRowGatherer(partitionCount);
  const options = {
    ...limits,
    route,
    workspace,
    idempotencyKey: id,
    versions: () => version,
    reserve: () => undefined,
  };
  const [rejected] = await gatherCalls(outline, gatherer, options, NO_PAUSE);
  return rejected ? rejected.message : gatherer.finish();
}
