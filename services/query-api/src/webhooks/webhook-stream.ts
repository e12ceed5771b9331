import { sleep } from '@sluice/shared/base/retry';
import type { MemoryBudget, Reservation } from '@sluice/shared/http/memory-budget';
import { queryOf } from '@sluice/shared/http/query-string';
import { reserve } from '../http/http.ts';
import type { KnownSegments } from '../records/records.ts';
import {
  type EventNote,
  NOTE,
  parseStreamRequest,
  type StreamHubs,
  type StreamId,
  type StreamListener,
} from '../stream/stream.ts';
import type { Webhook } from './webhook.ts';

/** What a stream says: an event and the position after it, a position alone, or that it cannot go on. */
export type StreamMessage =
  | ({ readonly kind: 'event'; readonly id: string; readonly data: string } & EventNote)
  | { readonly kind: 'position'; readonly id: string }
  | { readonly kind: 'problem'; readonly code: string }
  | { readonly kind: 'end' };

/** What a stream takes before it has events: its objects, and the filter as text and as SQL. */
const STREAM_BYTES = 16 * 1_024;
const MEMORY_PER_FILTER = 8;

/** How many times a delivery holds its events: as they came, and in its body. */
const COPIES = 2;

/** Before the first event. */
const UNKNOWN: EventNote = { shownAtMs: Number.NEGATIVE_INFINITY, receivedAtUs: 0 };

/** The messages of a listener's body. Its lines are those of `GET /events/stream`. */
async function* messagesOf(body: AsyncIterable<Buffer>): AsyncGenerator<StreamMessage, void, undefined> {
  let rest: Buffer = Buffer.alloc(0);
  let id = '';
  let type = '';
  let data: string[] = [];
  let note: EventNote = UNKNOWN;
  for await (const chunk of body) {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    const end = rest.lastIndexOf(10);
    if (end < 0) continue;
    const lines = rest.toString('utf8', 0, end).split('\n');
    rest = rest.subarray(end + 1);
    for (const line of lines) {
      if (line.startsWith('data: ')) data.push(line.slice(6));
      else if (line.startsWith('id: ')) id = line.slice(4);
      else if (line.startsWith('event: ')) type = line.slice(7);
      else if (line.startsWith(NOTE)) note = JSON.parse(line.slice(2)) as EventNote;
      else if (line === '') {
        yield messageOf(type, id, data, note);
        type = '';
        data = [];
      }
    }
  }
}

function messageOf(type: string, id: string, data: readonly string[], note: EventNote): StreamMessage {
  if (type === 'problem') return { kind: 'problem', code: String(JSON.parse(data.join('\n')).code) };
  if (data.length === 0 || type !== '') return { kind: 'position', id };
  return { kind: 'event', id, data: data.join('\n'), ...note };
}

/** How much a stream holds of the events that it has returned and that are not delivered yet. */
interface HeldBytes {
  bytes: number;
}

/** What opens streams, and finds the segments that filters name. */
export type StreamSource = Pick<StreamHubs, 'open'> & KnownSegments;

/** The stored events of a webhook, from a position on. It reads what `GET /events/stream` would send, within this process. */
export class WebhookStream {
  readonly #listener: StreamListener;
  readonly #memory: Reservation | undefined;
  readonly #messages: AsyncGenerator<StreamMessage, void, undefined>;
  readonly #held: HeldBytes;
  #next: Promise<StreamMessage> | undefined;
  #unread: StreamMessage | undefined;

  private constructor(listener: StreamListener, memory: Reservation | undefined, held: HeldBytes) {
    this.#listener = listener;
    this.#memory = memory;
    this.#held = held;
    this.#messages = messagesOf(listener.body);
  }

  /**
   * @param after where it begins; default: now
   * @param budget the memory of all requests: the webhooks of a workspace share in it as one key of the workspace does. Default:
   * nothing is reserved
   * @throws {Problem} `position_lost`, `store_unavailable`, `overloaded`, or `invalid_request` when the filter is not valid any more
   */
  static async open(
    source: StreamSource,
    { filter, workspace }: Webhook,
    after?: StreamId,
    budget?: Pick<MemoryBudget, 'open'>,
  ): Promise<WebhookStream> {
    const known = await source.inQuery(workspace, queryOf(filter));
    const { selection, key, weight } = parseStreamRequest(known, undefined, workspace);
    const memory = budget?.open({ hash: `webhooks of ${workspace}`, workspace });
    try {
      reserve(memory, STREAM_BYTES + MEMORY_PER_FILTER * key.length);
      const held: HeldBytes = { bytes: 0 };
      const unsentBytes = () => COPIES * held.bytes;
      const common = { selection, key, weight, isInternal: true, isAllowed: () => true, unsentBytes };
      return new WebhookStream(await source.open({ ...common, ...(memory && { memory }) }, after), memory, held);
    } catch (error) {
      memory?.release();
      throw error;
    }
  }

  /** Returns the next message; `undefined` when there is none within so many milliseconds, or the signal aborts. */
  async next(waitMs: number, signal: AbortSignal): Promise<StreamMessage | undefined> {
    const unread = this.#unread;
    this.#unread = undefined;
    if (unread) return this.#hold(unread);
    this.#next ??= this.#read();
    const waiting = new AbortController();
    const message = await Promise.race([
      this.#next,
      sleep(Math.max(0, waitMs), AbortSignal.any([signal, waiting.signal])).then(() => undefined),
    ]);
    waiting.abort();
    if (!message) return undefined;
    this.#next = undefined;
    return this.#hold(message);
  }

  /** The next call of {@link next} returns this message again. */
  unread(message: StreamMessage): void {
    this.#unread = message;
    this.#held.bytes -= bytesOf(message);
  }

  /** The events of before are delivered, and no longer held. */
  release(): void {
    this.#held.bytes = 0;
  }

  close(): void {
    this.#listener.body.destroy();
    this.#memory?.release();
  }

  #hold(message: StreamMessage): StreamMessage {
    this.#held.bytes += bytesOf(message);
    return message;
  }

  async #read(): Promise<StreamMessage> {
    try {
      const { value, done } = await this.#messages.next();
      return done || !value ? { kind: 'end' } : value;
    } catch {
      // The body was destroyed.
      return { kind: 'end' };
    }
  }
}

function bytesOf(message: StreamMessage): number {
  return message.kind === 'event' ? message.data.length : 0;
}

/** Returns the position at which the order of storage ends now. @throws {Problem} as {@link WebhookStream.open} */
export async function positionNow(source: StreamSource, webhook: Webhook): Promise<string> {
  const stream = await WebhookStream.open(source, webhook);
  try {
    const first = await stream.next(10_000, new AbortController().signal);
    if (first?.kind === 'position' || first?.kind === 'event') return first.id;
    throw new Error('a stream begins without a position');
  } finally {
    stream.close();
  }
}
