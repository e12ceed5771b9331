import { ERRORS_MAX } from '@sluice/shared/http/problem';
import type { CallOutline } from '@sluice/submissions/calls/call-outline';
import { type CallRowsOptions, collectCalls, type RejectedIndex } from '@sluice/submissions/calls/call-rows';
import type { Pause } from '@sluice/submissions/reading/pause';
import { type PartitionRows, RowCollector } from '@sluice/submissions/rows/partition-rows';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Admission } from '../http/admission.ts';
import type { BodyQueue } from '../http/body-queue.ts';
import { keysOutsideOf } from '../http/call-keys.ts';
import { clientOf } from '../http/client-library.ts';
import type { RowPublisher } from '../kafka/row-publisher.ts';
import type { IngestMetrics } from '../metrics.ts';
import type { KnownLinks, RequestLinks } from './known-links.ts';
import { publishRows } from './publish-rows.ts';
import type { VersionClock } from './version-clock.ts';

/** What the routes of calls need, whichever clients they are for. */
export interface PostCallsOptions extends Pick<CallRowsOptions, 'callBytesMax' | 'propertiesMax' | 'now'> {
  readonly admission: Admission;
  readonly bodies: BodyQueue;
  readonly publisher: RowPublisher;
  readonly versions: VersionClock;
  readonly links: KnownLinks;
  readonly metrics: Pick<IngestMetrics, 'acceptedEvents' | 'calls' | 'rejectedCalls'>;
  /** The number of partitions of each topic. */
  readonly partitionCount: number;
  readonly bodyBytesMax: number;
  readonly callsMax: number;
  readonly produceTimeoutMs: number;
}

/** The calls of a request. */
export interface CallsRequest {
  /** The rows of all calls: rejected ones are kept as well. */
  readonly rows: readonly PartitionRows[];
  readonly count: number;
  readonly rejected: readonly RejectedIndex[];
  readonly links: RequestLinks;
  /** The client library that sent them. */
  readonly client: string;
}

/** Creates the rows of the calls of a request whose key and number of events were admitted. */
export async function readCallsRequest(
  request: FastifyRequest,
  outline: CallOutline,
  read: Pick<CallRowsOptions, 'form' | 'idempotencyKey'>,
  { admission, versions, links: known, partitionCount, callBytesMax, propertiesMax, now }: PostCallsOptions,
  pause: Pause,
): Promise<CallsRequest> {
  const collector = new RowCollector(partitionCount, admission.rowMemory(request));
  const { workspace } = request.apiKey;
  const client = clientOf(outline.body, request.headers['user-agent']);
  const limits = { callBytesMax, propertiesMax, now };
  const keys = keysOutsideOf(request);
  const links = known.ofRequest(workspace);
  const options = { ...limits, ...read, versions: () => versions.next(), links, workspace, client, keys };
  const rejected = await collectCalls(outline, collector, options, pause);
  const rows = collector.finish();
  request.reservation?.shrink(outline.body.length);
  return { rows, count: outline.calls.length, rejected, links, client };
}

/**
 * Responds `200` once Kafka has the calls of a request, with those that were rejected, which Kafka has as well.
 *
 * @param accepted what the response begins with
 */
export async function publishCalls(
  request: FastifyRequest,
  reply: FastifyReply,
  { rows, count, rejected, links, client }: CallsRequest,
  { publisher, metrics }: Pick<PostCallsOptions, 'publisher' | 'metrics'>,
  { accepted, timeoutMs }: { readonly accepted: Readonly<Record<string, unknown>>; readonly timeoutMs: number },
): Promise<FastifyReply> {
  // The rows hold everything that is needed. The body, which may be much larger, can go.
  request.body = undefined;
  if (rows.length > 0) await publishRows(publisher, request, rows, timeoutMs);
  links.remember();
  metrics.acceptedEvents.inc(count - rejected.length);
  metrics.calls.inc({ client }, count);
  for (const { reason } of rejected) metrics.rejectedCalls.inc({ client, reason });
  reply.code(200).type('application/json; charset=utf-8');
  return reply.send(responseBody(accepted, rejected));
}

/** The JSON of the response. Of many rejected calls it names the first. */
function responseBody(accepted: Readonly<Record<string, unknown>>, rejected: readonly RejectedIndex[]): string {
  if (rejected.length === 0) return JSON.stringify(accepted);
  const named = rejected.slice(0, ERRORS_MAX).map(({ index, code, message }) => ({ index, code, message }));
  return JSON.stringify({ ...accepted, rejected: named, rejectedCount: rejected.length });
}
