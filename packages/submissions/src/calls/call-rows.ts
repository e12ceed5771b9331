import { randomUUIDv7 } from 'node:crypto';
import { asProblem } from '../reading/body-problems.ts';
import { parseSlice, parsingError } from '../reading/body-slices.ts';
import type { JsonSlice } from '../reading/json-slice.ts';
import type { Pause } from '../reading/pause.ts';
import type { Acceptance } from '../rows/acceptance.ts';
import { outgoingChange, propertyRow } from '../rows/change-row.ts';
import { EventRows, subjectFields } from '../rows/event-row.ts';
import { type LinkRegister, linkRow } from '../rows/link-row.ts';
import type { OutgoingRow, RowCollector } from '../rows/partition-rows.ts';
import { fitsRecord, ROW_BYTES_MAX } from '../rows/row-size.ts';
import { type Call, type CallError, type CallForm, InvalidCall, type RejectionReason } from './call.ts';
import { type CallOutline, parseBatchContext } from './call-outline.ts';
import { type CallParserOptions, parseCall } from './call-parser.ts';
import { type CallPerson, findPerson } from './find-person.ts';
import { messageUuid } from './message-uuid.ts';
import { parsePosthogEvent } from './posthog/posthog-event.ts';
import { rejectedCallRow } from './rejected-call.ts';

export interface CallRowsOptions extends CallParserOptions {
  /** The largest call, in bytes as sent, without white space between tokens. */
  readonly callBytesMax: number;
  readonly form: CallForm;
  readonly workspace: string;
  readonly idempotencyKey: string | undefined;
  /** The API keys that the request has outside of its body: what is kept of rejected calls does not have them. */
  readonly keys: readonly string[];
  /** The client library that sent the calls, which rejected ones are kept with. */
  readonly client: string | undefined;
  /** Returns the next version; each call has one of its own, so that their order decides between two changes. */
  readonly versions: () => number;
  readonly links: LinkRegister;
}

/** A call that was rejected. */
export interface RejectedIndex extends CallError {
  /** The position of the call in its batch. */
  readonly index: number;
  readonly reason: RejectionReason;
}

/**
 * Reads the calls of a body one after the other, and creates their rows. A call that cannot be taken does not keep the
 * others from being taken.
 *
 * @returns the calls that were rejected, in order
 * @throws {Problem} `malformed_json` where the body turns out not to be JSON, and what the collector throws
 */
export async function collectCalls(
  outline: CallOutline,
  collector: RowCollector,
  options: CallRowsOptions,
  pause: Pause,
): Promise<RejectedIndex[]> {
  try {
    return await collectAll(outline, collector, options, pause);
  } catch (error) {
    throw asProblem(error);
  }
}

async function collectAll(
  outline: CallOutline,
  collector: RowCollector,
  options: CallRowsOptions,
  pause: Pause,
): Promise<RejectedIndex[]> {
  const rejected: RejectedIndex[] = [];
  const reader = new CallRowsReader(outline, options);
  for (const [index, call] of outline.calls.entries()) {
    const waiting = pause();
    if (waiting) await waiting;
    const result = reader.read(call, index);
    if (Array.isArray(result)) {
      for (const row of result) collector.add(row);
      continue;
    }
    const person = await findPerson(outline.body, result.slice, options.form, pause);
    collector.add(reader.rejectedRow(result, person));
    rejected.push({ index, ...result.error, reason: result.reason });
  }
  return rejected;
}

/** A call that cannot be taken. */
interface RejectedSlice {
  readonly slice: JsonSlice;
  readonly version: number;
  readonly error: CallError;
  readonly reason: RejectionReason;
}

class CallRowsReader {
  readonly #outline: CallOutline;
  readonly #options: CallRowsOptions;
  readonly #batchContext: Readonly<Record<string, unknown>> | string;
  readonly #contextBytes: number;
  readonly #eventRows: EventRows;
  /** How many calls before have the same content, by the uuid that is made of it. */
  readonly #equals = new Map<string, number>();
  /** When the request was received, in milliseconds since 1970: the same for all of its calls. */
  #receivedMs: number | undefined;

  constructor(outline: CallOutline, options: CallRowsOptions) {
    this.#outline = outline;
    this.#options = options;
    this.#batchContext = parseBatchContext(outline);
    this.#contextBytes = outline.context?.size ?? 0;
    this.#eventRows = new EventRows(options);
  }

  /** @throws {InvalidCall} */
  #rowsOf(call: Call, index: number, version: number): OutgoingRow[] {
    const rows = this.#callRows(call, index, version);
    for (const { line } of rows) {
      if (fitsRecord(line)) continue;
      throw new InvalidCall('too_large', `A call must be at most ${ROW_BYTES_MAX} bytes as a row.`);
    }
    return rows;
  }

  #callRows(call: Call, index: number, version: number): OutgoingRow[] {
    const { workspace, idempotencyKey } = this.#options;
    const { timestamp, userId, groupId } = call;
    const uuid = this.#uuidOf(call);
    const subject = subjectFields(userId, groupId);
    const { row } = this.#eventRows.create(call, { subject, version, uuid, ownTimeMs: timestamp, timestamp, index });
    const links = call.links.filter((link) => this.#options.links.needsRow(link));
    if (call.changes.length + links.length === 0) return [row];
    const acceptance = { workspace, version, idempotencyKey };
    return [row, ...changesOf(call, acceptance), ...links.map((link) => linkRow(link, acceptance))];
  }

  #uuidOf({ uuid, messageId, content }: Call): string | undefined {
    const { workspace } = this.#options;
    if (uuid !== undefined) return uuid;
    if (messageId !== undefined) return messageUuid(workspace, messageId);
    if (content === undefined) return undefined;
    const first = messageUuid(workspace, content);
    const before = this.#equals.get(first) ?? 0;
    this.#equals.set(first, before + 1);
    // Nobody sends an event twice in one request. Sent again, the whole request has the same uuids.
    return before === 0 ? first : messageUuid(workspace, `${content}\0#${before}`);
  }

  /** Returns the rows of the call at a place in the body, or why it cannot be taken. */
  read(slice: JsonSlice, index: number): OutgoingRow[] | RejectedSlice {
    const version = this.#options.versions();
    this.#receivedMs ??= Math.floor(version / 1_000);
    try {
      this.#checkSize(slice);
      const value = slice.members ?? parseSlice(this.#outline.body, slice);
      return this.#rowsOf(this.#parse(value), index, version);
    } catch (error) {
      if (!(error instanceof InvalidCall)) throw error;
      const { reason, message } = error;
      return { slice, version, error: { code: reason === 'too_large' ? reason : 'invalid_call', message }, reason };
    }
  }

  /** Returns the row of a call that cannot be taken. */
  rejectedRow({ slice, version, error }: RejectedSlice, person: CallPerson): OutgoingRow {
    const { form, workspace, client, keys } = this.#options;
    const rejection = { slice, form, reason: error.message, person, workspace, client, version, keys };
    return rejectedCallRow(this.#outline, rejection);
  }

  #checkSize(slice: JsonSlice): void {
    const { callBytesMax } = this.#options;
    if (slice.size + this.#contextBytes > callBytesMax) {
      const limit = `A call must be at most ${callBytesMax} bytes as JSON, with the context of its batch.`;
      throw new InvalidCall('too_large', limit);
    }
    const error = parsingError(slice);
    if (error !== undefined) throw new InvalidCall('malformed', `The call ${error}.`);
    if (typeof this.#batchContext === 'string') throw new InvalidCall('malformed', this.#batchContext);
  }

  #parse(value: unknown): Call {
    const { form, propertiesMax, now } = this.#options;
    const options = { propertiesMax, now, receivedMs: this.#receivedMs, sentAt: this.#outline.sentAt };
    if (form === 'posthog') return parsePosthogEvent(value, options);
    const batchContext = this.#batchContext as Readonly<Record<string, unknown>>;
    return parseCall(value, form === 'batch' ? undefined : form, batchContext, options);
  }
}

function changesOf({ changed, userId, groupId, changes }: Call, acceptance: Acceptance): OutgoingRow[] {
  const id = changed === 'user' ? userId : groupId;
  if (id === undefined) return [];
  const changeId = randomUUIDv7();
  return changes.map((property) => outgoingChange(propertyRow(changed, id, property, acceptance, changeId)));
}
