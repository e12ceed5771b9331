import { Problem } from '@sluice/shared/http/problem';
import type { Nobody } from '../reading/nobody.ts';
import { NO_PAUSE } from '../reading/pause.ts';
import { type Link, namesNobody } from '../rows/link-row.ts';
import { type PartitionRows, RowCollector } from '../rows/partition-rows.ts';
import type { CallForm } from './call.ts';
import { readCallOutline } from './call-outline.ts';
import { type CallRowsOptions, collectCalls } from './call-rows.ts';
import { readPosthogOutline } from './posthog/posthog-outline.ts';
import type { RejectedCall } from './rejected-call.ts';

export interface ReplayOptions extends Pick<CallRowsOptions, 'callBytesMax' | 'propertiesMax' | 'now'> {
  /** The number of partitions of each topic. */
  readonly partitionCount: number;
  /** Whoever is never linked. */
  readonly nobody: Nobody;
  /** Gives an event without messageId the same uuid each time. */
  readonly id: string;
}

/**
 * Creates the rows of a call that was rejected, as if it were taken when it came. Returns a sentence when it cannot be
 * taken now either.
 */
export async function rowsOfRejectedCall(
  rejected: RejectedCall,
  options: ReplayOptions,
): Promise<readonly PartitionRows[] | string> {
  try {
    return await readAgain(rejected, options);
  } catch (error) {
    // A call that is too large is rejected before it is parsed.
    if (error instanceof Problem && error.code === 'malformed_json') return 'The call is not JSON.';
    throw error;
  }
}

async function readAgain(
  { call, context, type, format, workspace_id: workspace, client, received_at: version, cut }: RejectedCall,
  { id, partitionCount, nobody, ...limits }: ReplayOptions,
): Promise<readonly PartitionRows[] | string> {
  if (cut) return 'Only the beginning of the call is kept.';
  const form: CallForm = format ?? type ?? 'batch';
  const text = type ? call : `{"batch":[${call}]${context === undefined ? '' : `,"context":${context}`}}`;
  const outline = await (form === 'posthog'
    ? readPosthogOutline(Buffer.from(text), 1, NO_PAUSE)
    : readCallOutline(Buffer.from(text), form, 1, NO_PAUSE));
  const collector = new RowCollector(partitionCount, () => undefined);
  const options = {
    ...limits,
    form,
    workspace,
    client,
    idempotencyKey: id,
    keys: [],
    versions: () => version,
    links: { needsRow: (link: Link) => !namesNobody(link, nobody) },
  };
  const [rejected] = await collectCalls(outline, collector, options, NO_PAUSE);
  return rejected ? rejected.message : collector.finish();
}
