import { eventHash } from '@sluice/shared/rows/row-hashes';
import { z } from 'zod';
import type { JsonSlice } from '../reading/json-slice.ts';
import type { OutgoingRow } from '../rows/partition-rows.ts';
import { fitsRecord } from '../rows/row-size.ts';
import { CALL_TYPES, type CallForm } from './call.ts';
import type { CallOutline } from './call-outline.ts';
import type { CallPerson } from './find-person.ts';
import { withoutKeys } from './without-keys.ts';

/** How much is kept of a larger call, or of one with a larger context of its batch: the beginning, in bytes. */
const KEPT_BYTES_MAX = 256 * 1_024;

/**
 * A call that could not be taken, on its way to the dead letters: as it came, with what is needed to take it later. The
 * fields are in the order of the row.
 */
const rejectedCall = z.object({
  workspace_id: z.string(),
  /** The client library that sent it. Rows of older versions have none. */
  client: z.string().optional(),
  user_id: z.string().optional(),
  anonymous_id: z.string().optional(),
  /** The type that the route said. */
  type: z.enum(CALL_TYPES).optional(),
  /** How the call is written. Default: as a client of Segment or RudderStack writes it. */
  format: z.literal('posthog').optional(),
  /** The text of the call. */
  call: z.string(),
  /** The text of the batch's context. */
  context: z.string().optional(),
  /** The call or its context was too large, and `call` is its beginning: it cannot be taken later. */
  cut: z.literal(true).optional(),
  reason: z.string(),
  /** In microseconds since 1970. */
  received_at: z.number(),
});

export type RejectedCall = z.output<typeof rejectedCall>;

export interface Rejection {
  readonly slice: JsonSlice;
  readonly form: CallForm;
  readonly reason: string;
  /** A deletion of the user, or of the visitor where it names no user, erases what is kept of the call. */
  readonly person: CallPerson;
  readonly workspace: string;
  /** The client library that sent it. */
  readonly client: string | undefined;
  readonly version: number;
  /** The API keys of the request, besides that of its body. */
  readonly keys: readonly string[];
}

/** Creates the row of a call that cannot be taken. Kafka keeps it like any other, and the writer makes it a dead letter, without API keys. */
export function rejectedCallRow(outline: CallOutline, { slice, ...rejection }: Rejection): OutgoingRow {
  const { body, context, writeKey } = outline;
  const keys = writeKey === undefined ? rejection.keys : [...rejection.keys, writeKey];
  const withoutKey = (text: string) => withoutKeys(text, rejection.form, keys);
  // Looked at first: a large context would be encoded again for each rejected call of its batch.
  const isSmall = lengthOf(slice) <= KEPT_BYTES_MAX && (!context || lengthOf(context) <= KEPT_BYTES_MAX);
  const whole = isSmall
    ? lineOf(rejection, withoutKey(textOf(body, slice)), context && withoutKey(textOf(body, context)))
    : undefined;
  const line = whole !== undefined && fitsRecord(whole) ? whole : cutLine(body, slice, rejection, withoutKey);
  return { topic: 'events', kind: 'rejected', hash: eventHash(line), line };
}

/** The row of as much of the beginning of a call as fits. A character that is cut in two becomes U+FFFD. */
function cutLine(
  body: Buffer,
  { start, end }: JsonSlice,
  rejection: Omit<Rejection, 'slice'>,
  withoutKey: (text: string) => string,
): string {
  for (let bytes = Math.min(KEPT_BYTES_MAX, end - start); ; bytes = Math.floor(bytes / 2)) {
    const line = lineOf(rejection, withoutKey(body.toString('utf8', start, start + bytes)), undefined, true);
    if (fitsRecord(line)) return line;
  }
}

function lineOf(
  { reason, person, form, workspace, client, version, keys }: Omit<Rejection, 'slice'>,
  call: string,
  context: string | undefined,
  cut?: true,
): string {
  const unlessKey = (id: string | undefined) => (id !== undefined && keys.includes(id) ? undefined : id);
  const row: RejectedCall = {
    workspace_id: workspace,
    client,
    user_id: unlessKey(person.userId),
    anonymous_id: unlessKey(person.anonymousId),
    type: form === 'batch' || form === 'posthog' ? undefined : form,
    format: form === 'posthog' ? form : undefined,
    call,
    context,
    cut,
    reason,
    received_at: version,
  };
  return JSON.stringify(row);
}

function lengthOf({ start, end }: JsonSlice): number {
  return end - start;
}

/** Parses a row of {@link rejectedCallRow}. Returns `undefined` when it is none. */
export function parseRejectedCall(row: Buffer): RejectedCall | undefined {
  try {
    return rejectedCall.parse(JSON.parse(row.toString()));
  } catch {
    return undefined;
  }
}

function textOf(body: Buffer, { start, end }: JsonSlice): string {
  return body.toString('utf8', start, end);
}
