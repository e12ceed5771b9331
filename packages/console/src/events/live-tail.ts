import { useEffect, useState } from 'preact/hooks';
import { ApiError, type Event, parseRecords, request, without } from '../base/base.ts';

/** The page keeps so many events at most. */
const EVENTS_MAX = 200;

/** A stream may repeat events when its server has changed. An event among the last so many is shown once. */
const REPEATS_MAX = 20_000;

/** The page shows new events together, this often. */
const SHOWN_EVERY_MS = 250;

/** HTTP statuses after which the tail connects again. 0 stands for no response. */
const RETRIED: ReadonlySet<number> = new Set([0, 503]);

const RETRY_AFTER_MS = 2_000;

/** The parameters of a page that a stream does not have. */
const PAGE_PARAMS = ['startDate', 'endDate', 'limit', 'offset', 'orderByField', 'orderByDirection', 'cursor', 'total'];

interface LiveTail {
  /** The newest first. */
  readonly events: readonly Event[];
  /** What the tail does now. */
  readonly status: string;
  /** Why it has ended. */
  readonly error: Error | undefined;
  /** How often it has begun to listen. A page that is read after that misses nothing before the tail. */
  readonly starts: number;
}

const NOTHING = { events: [], status: '', error: undefined };

/**
 * Follows `GET /events/stream` while `isOn`, with the filters of a page. What has arrived stays when it is switched off,
 * until the filters change or it begins again.
 */
export function useLiveTail(isOn: boolean, params: URLSearchParams): LiveTail {
  const [tail, setTail] = useState<LiveTail>({ ...NOTHING, starts: 0 });
  const query = without(params, ...PAGE_PARAMS).toString();
  const clear = () => setTail(({ starts }) => ({ ...NOTHING, starts }));
  useEffect(clear, [query]);
  useEffect(() => {
    if (!isOn) return;
    clear();
    const controller = new AbortController();
    let arrived: Event[] = [];
    const seen = new RecentlySeen(REPEATS_MAX);
    const onEvent = (event: Event) => {
      if (seen.add(`${event.uuid} ${event.timestamp}`)) arrived.push(event);
    };
    const show = () => {
      if (arrived.length === 0) return;
      const newest = arrived.reverse();
      arrived = [];
      setTail((last) => ({ ...last, events: [...newest, ...last.events].slice(0, EVENTS_MAX) }));
    };
    const timer = setInterval(show, SHOWN_EVERY_MS);
    const setStatus = (status: string) => setTail((last) => ({ ...last, status }));
    const onStart = () => setTail((last) => ({ ...last, starts: last.starts + 1 }));
    follow(query, controller.signal, { setStatus, onStart, onEvent }).catch((error) => {
      if (!controller.signal.aborted) setTail((last) => ({ ...last, status: 'Stopped.', error }));
    });
    return () => {
      clearInterval(timer);
      controller.abort();
      show();
      setStatus('');
    };
  }, [isOn, query]);
  return tail;
}

/** Returns the events of a tail, and those of a page that it does not have. */
export function withStored({ events }: LiveTail, stored: readonly Event[]): Event[] {
  const tailed = new Set(events.map(({ uuid }) => uuid));
  return [...events, ...stored.filter(({ uuid }) => !tailed.has(uuid))];
}

interface Follower {
  readonly setStatus: (status: string) => void;
  /** Called once, when the stream has begun. */
  readonly onStart: () => void;
  readonly onEvent: (event: Event) => void;
}

/** Connects again after each end, where the stream was left, until query-api refuses the request. */
async function follow(query: string, signal: AbortSignal, { setStatus, onStart, onEvent }: Follower): Promise<void> {
  let lastId = '';
  while (!signal.aborted) {
    try {
      setStatus('Connecting …');
      const headers = { accept: 'text/event-stream', ...(lastId !== '' && { 'last-event-id': lastId }) };
      // EventSource cannot send the key in a header.
      const { body } = await request(`events/stream?${query}`, { headers, signal });
      setStatus('Live: new events appear at the top.');
      if (lastId === '') onStart();
      const parse = createMessageParser();
      for await (const piece of pieces(body)) {
        for (const { id, name, data } of parse(piece)) {
          lastId = id;
          // The next stream with these filters would end as well.
          if (name === 'problem') throw new ApiError(400, Object(JSON.parse(data ?? '{}')).detail);
          if (name === 'message' && data !== undefined) onEvent(parseRecords(data) as Event);
        }
      }
    } catch (error) {
      if (error instanceof ApiError && !RETRIED.has(error.status)) throw error;
    }
    if (signal.aborted) return;
    setStatus('The connection was lost; trying again …');
    await new Promise((resolve) => setTimeout(resolve, RETRY_AFTER_MS));
  }
}

async function* pieces(body: ReadableStream<Uint8Array> | null): AsyncGenerator<string, void, void> {
  if (!body) return;
  // Safari cannot iterate a stream.
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** Remembers the keys that it was given last, to tell which come again. */
export class RecentlySeen {
  readonly #max: number;
  /** The oldest first. */
  readonly #keys = new Set<string>();

  constructor(max: number) {
    this.#max = max;
  }

  /** Returns whether a key is new. */
  add(key: string): boolean {
    if (this.#keys.has(key)) return false;
    this.#keys.add(key);
    if (this.#keys.size > this.#max) for (const oldest of this.#keys.values().take(1)) this.#keys.delete(oldest);
    return true;
  }
}

/** One message of a stream of server-sent events. */
interface Message {
  /** The last `id` so far, `''` without one. */
  readonly id: string;
  /** `message`, unless it has another name. */
  readonly name: string;
  /** `undefined` for a message that has an `id` alone: the stream can be resumed from there. */
  readonly data: string | undefined;
}

/**
 * Returns a function that takes a stream of server-sent events in pieces, and returns the messages that a piece
 * completes. Comments are left out.
 *
 * https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
 */
export function createMessageParser(): (piece: string) => Message[] {
  let rest = '';
  let id = '';
  let hasId = false;
  let name = '';
  let data: string[] = [];
  return (piece) => {
    const messages: Message[] = [];
    const lines = (rest + piece).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines.map((text) => text.replace(/\r$/, ''))) {
      const [, field = '', value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
      if (field === 'id') {
        id = value;
        hasId = true;
      } else if (field === 'event') {
        name = value;
      } else if (field === 'data') {
        data.push(value);
      } else if (line === '') {
        const isWhole = data.length > 0;
        if (hasId || isWhole)
          messages.push({ id, name: name || 'message', data: isWhole ? data.join('\n') : undefined });
        hasId = false;
        name = '';
        data = [];
      }
    }
    return messages;
  };
}
