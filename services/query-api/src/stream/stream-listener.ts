import { PassThrough, type Readable } from 'node:stream';
import type { Reservation } from '@sluice/shared/http/memory-budget';
import { Problem } from '@sluice/shared/http/problem';
import { eventRecord, receivedAtUs } from '../records/records.ts';
import { isPlaceAtLeast, laterOf, type StreamPosition } from './stream-position.ts';
import type { StreamRow, StreamSelection } from './stream-query.ts';

/**
 * How many bytes wait for a client before it is sent nothing more, in each of the two buffers of its stream. One batch of
 * rows may come on top.
 */
const BUFFER_BYTES = 64 * 1_024;

/** How long a client may read nothing before it is disconnected, in milliseconds. */
const STALL_MS_MAX = 60_000;

/** How long a client waits before it connects again, in milliseconds: for browsers, which have a default of some seconds. */
const RECONNECT_MS = 1_000;

/** Why a stream ended. */
export const STREAM_ENDS = ['client', 'stalled', 'unauthorized', 'failed', 'position_lost', 'stopping'] as const;

export type StreamEnd = (typeof STREAM_ENDS)[number];

export interface ListenRequest {
  readonly selection: StreamSelection;
  /** Equal for equal selections. */
  readonly key: string;
  /** How much the selection adds to a query. */
  readonly weight: number;
  /** Whether the client may still read the workspace: its key may be revoked while it listens. */
  readonly isAllowed: () => boolean;
  /** What the request holds. Default: nothing is reserved. */
  readonly memory?: Reservation;
  /** Whether it is no client of `GET /events/stream`, and takes none of their places. Default: false. */
  readonly isInternal?: boolean;
  /** How many bytes wait for the client outside of {@link StreamListener.body}. Default: none. */
  readonly unsentBytes?: () => number;
}

/** What a listener is sent events by. */
export interface ListenerSource {
  /** Returns the id of a position, to which everything that Kafka had appended before a time was sent already. */
  idOf(position: StreamPosition, throughMs: number): string;
}

/** Where a listener is, and what it is sent events by. */
export interface ListenerPlace {
  readonly source: ListenerSource;
  readonly position: StreamPosition;
  /** Until when everything was sent before, in milliseconds since 1970; 0 when that is not known. */
  readonly throughMs: number;
}

/** What a listener is told whose stream goes on at another server. */
export interface Moved {
  /** The names of the servers. */
  readonly from: string;
  readonly to: string;
  /** Since when events may come again: an ISO 8601 time of Kafka's log. */
  readonly since: string;
}

/** What an internal listener is told of an event besides its data, as JSON in a comment. */
export interface EventNote {
  /** When it was decided that the event is shown, or earlier, on the clock of `performance`. */
  readonly shownAtMs: number;
  /** In microseconds since 1970; the data has milliseconds. */
  readonly receivedAtUs: number;
}

/** Begins the line of an {@link EventNote}. */
export const NOTE = ': {';

/**
 * Returns the lines of a server-sent event that follow its `id`.
 *
 * @param added members of the record besides. Default: none
 */
export function eventData({ event }: StreamRow, added?: Readonly<Record<string, string | null>>): Buffer {
  // JSON keeps its meaning when its line breaks change: inside of strings it has none.
  const data = eventRecord(event, added).replaceAll(/\r\n?|\n/g, '\ndata: ');
  return Buffer.from(`data: ${data}\n\n`);
}

/**
 * One client of the stream: what it is sent, and how far it is.
 *
 * A client that reads slowly is left out while its buffer is full. It keeps its position, and goes on from there once it
 * has read: it gets the same events, later, at the price of a query. A client that reads nothing for a minute is
 * disconnected, and may resume. One that there is no memory for is left out as well.
 */
export class StreamListener {
  readonly request: ListenRequest;
  readonly #body = new PassThrough({ highWaterMark: BUFFER_BYTES });
  readonly #now: () => number;
  /** What waits for the client. */
  readonly #memory: Reservation | undefined;
  #place: ListenerPlace;
  #isLeftOut = false;
  #fullSince: number | undefined;
  #end: StreamEnd = 'client';

  /** @param now returns milliseconds of a clock that is never set; the default is that of the process */
  constructor(request: ListenRequest, place: ListenerPlace, now = () => performance.now()) {
    this.request = request;
    this.#place = place;
    this.#now = now;
    this.#memory = request.memory?.part();
    this.#body.on('drain', () => {
      this.#fullSince = undefined;
    });
    this.#write(`retry: ${RECONNECT_MS}\n${this.#idLine()}\n`);
  }

  /** The response. To destroy it ends the listening. */
  get body(): Readable {
    return this.#body;
  }

  /** Everything up to here was sent, or does not belong to the selection. */
  get position(): StreamPosition {
    return this.#place.position;
  }

  /** As in {@link ListenerPlace}. */
  get throughMs(): number {
    return this.#place.throughMs;
  }

  get isEnded(): boolean {
    return this.#body.writableEnded || this.#body.destroyed;
  }

  /** Whether it can be sent more: the client has read most of what it was sent, and has not left. */
  get isOpen(): boolean {
    return !this.isEnded && !this.#isLeftOut && this.#fullSince === undefined;
  }

  /** Whether there was no memory for an event: it is not sent any later one until {@link refresh}. */
  get isLeftOut(): boolean {
    return this.#isLeftOut;
  }

  /** Releases the memory of what the client has read. Events that there was no memory for can be sent again. */
  refresh(): void {
    this.#isLeftOut = !this.#holds(0);
  }

  /** Resolves when the client has read what it was sent, or has left, or the signal aborts. */
  drained(signal: AbortSignal): Promise<void> {
    if (this.isOpen || this.isEnded) return Promise.resolve();
    return new Promise((resolve) => {
      const done = () => {
        for (const event of ['drain', 'close']) this.#body.off(event, done);
        signal.removeEventListener('abort', done);
        resolve();
      };
      for (const event of ['drain', 'close']) this.#body.on(event, done);
      signal.addEventListener('abort', done);
    });
  }

  /**
   * Sends the event at a position, unless the client has it already, or there is no memory for it; returns whether it was
   * sent.
   *
   * @param data the {@link eventData} of the event, which listeners share
   * @param shownAtMs as in {@link EventNote}
   */
  send({ shard, place, event }: StreamRow, data: Buffer, position: StreamPosition, shownAtMs: number): boolean {
    const known = this.position.get(shard);
    if (this.isEnded || this.#isLeftOut || (known && isPlaceAtLeast(known, place))) return false;
    this.#isLeftOut = !this.#holds(data.length);
    if (this.#isLeftOut) return false;
    this.reach(position);
    this.#write(this.#idLine());
    if (this.request.isInternal) {
      const note: EventNote = { shownAtMs, receivedAtUs: receivedAtUs(event) };
      this.#write(`: ${JSON.stringify(note)}\n`);
    }
    this.#write(data);
    return true;
  }

  /** Notes that nothing up to a position is left to be sent. */
  reach(position: StreamPosition): void {
    this.#place = { ...this.#place, position: laterOf(this.position, position) };
  }

  /** Goes on at another server, and says so: it may be sent again what it was sent lately. */
  move(place: ListenerPlace, moved: Moved): void {
    this.#place = place;
    this.tell(moved);
  }

  /** Goes on at a replica, where it is sent nothing again. */
  stayAt(place: ListenerPlace): void {
    this.#place = place;
  }

  /** Says that it is at another server than its client was before. */
  tell(moved: Moved): void {
    if (!this.isEnded) this.#write(`event: moved\n${this.#idLine()}data: ${JSON.stringify(moved)}\n\n`);
  }

  /** Sends a comment, and the position: a client that gets few events resumes from here, and not from its last event. */
  beat(): void {
    if (this.isEnded) return;
    if (this.#fullSince === undefined) this.#write(`: heartbeat\n${this.#idLine()}\n`);
    else if (this.#now() - this.#fullSince >= STALL_MS_MAX) this.end('stalled');
  }

  end(reason: StreamEnd): void {
    if (this.isEnded) return;
    this.#end = reason;
    // The end of a response that nobody reads would never be sent.
    if (this.#fullSince !== undefined) this.#body.destroy();
    else this.#body.end();
  }

  /** Says why its events cannot be read, and ends. */
  fail(cause: unknown): void {
    if (this.isOpen && cause instanceof Problem) {
      const { code, message: detail } = cause;
      this.#write(`event: problem\ndata: ${JSON.stringify({ code, detail })}\n\n`);
    }
    this.end(cause instanceof Problem && cause.code === 'position_lost' ? 'position_lost' : 'failed');
  }

  /** Calls back once, when the client has left or everything up to the end was sent. */
  onceEnded(callback: (reason: StreamEnd) => void): void {
    this.#body.once('close', () => callback(this.#end));
    // A client that leaves is no error.
    this.#body.on('error', () => undefined);
  }

  /** Reserves memory for what waits for the client and for so many bytes more; returns whether it fits. */
  #holds(bytes: number): boolean {
    const waiting = this.#body.readableLength + this.#body.writableLength + (this.request.unsentBytes?.() ?? 0);
    const growth = waiting + bytes - (this.#memory?.bytes ?? 0);
    if (growth > 0) return this.#memory?.grow(growth) ?? true;
    this.#memory?.shrink(-growth);
    return true;
  }

  #idLine(): string {
    const { source, position, throughMs } = this.#place;
    return `id: ${source.idOf(position, throughMs)}\n`;
  }

  #write(content: string | Buffer): void {
    if (!this.#body.write(content)) this.#fullSince ??= this.#now();
  }
}
