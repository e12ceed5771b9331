import { decodePosition } from '@sluice/query-api/stream/stream-position';
import { sleep } from '@sluice/shared/base/retry';
import { EventStream, type StreamMove } from '@sluice/shared/testing/event-stream';
import { eventually } from '@sluice/shared/testing/eventually';
import { explain, until } from '@sluice/shared/testing/until';
import { expect } from 'vitest';
import { readClickHouse } from './clickhouse.ts';
import type { Load } from './load.ts';
import type { Pipeline } from './pipeline.ts';
import type { EventPage, EventRecord } from './records.ts';

/** By how much the clocks of servers may differ, in milliseconds: what a stream leaves out when it looks for where to go on. */
const CLOCKS_MS = 5_000;

/** A client that connects again whenever its stream ends, as browsers do, and keeps all that it was sent. */
export class StreamFollower {
  /** Statuses of responses other than 200. */
  readonly refusals: number[] = [];
  readonly #url: () => string;
  readonly #filters: string;
  readonly #key: string;
  readonly #streamMs: number;
  readonly #streams: EventStream[] = [];
  readonly #stopping = new AbortController();
  readonly #following: Promise<void>;

  /**
   * @param url returns the address of a query-api, which may be away
   * @param filters begin with `?`, or are empty
   * @param streamMs for how long it stays connected at most; default: until the stream ends
   */
  constructor(url: () => string, filters: string, key: string, streamMs = Number.POSITIVE_INFINITY) {
    this.#url = url;
    this.#filters = filters;
    this.#key = key;
    this.#streamMs = streamMs;
    this.#following = this.#follow();
  }

  get connections(): number {
    return this.#streams.length;
  }

  get lastEventId(): string | undefined {
    return this.#streams.findLast(({ lastEventId }) => lastEventId !== undefined)?.lastEventId;
  }

  /** What it was sent, as identities of events. */
  get received(): readonly string[] {
    return this.segments.flat();
  }

  /** As {@link received}, from each move to another ClickHouse server to the next one. */
  get segments(): readonly (readonly string[])[] {
    const segments: string[][] = [[]];
    for (const { events, movedAt } of this.#streams) {
      for (const [index, { record }] of events.entries()) {
        for (const at of movedAt) if (at === index) segments.push([]);
        segments.at(-1)?.push(identityOf(record));
      }
      if (movedAt.includes(events.length)) segments.push([]);
    }
    return segments;
  }

  get moves(): readonly StreamMove[] {
    return this.#streams.flatMap(({ moves }) => moves);
  }

  /** Why streams have ended, where it was said. */
  get problems(): readonly unknown[] {
    return this.#streams.flatMap(({ problems }) => problems);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#following;
  }

  async #follow(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const url = `${this.#url()}/events/stream${this.#filters}`;
      const opening = EventStream.openPaused(url, { key: this.#key, lastEventId: this.lastEventId });
      // query-api may be away.
      const stream = await opening.catch(() => undefined);
      if (stream) await this.#read(stream);
      await sleep(100, signal);
    }
  }

  async #read(stream: EventStream): Promise<void> {
    const { statusCode = 0 } = stream.response;
    if (statusCode === 200) this.#streams.push(stream);
    else this.refusals.push(statusCode);
    const close = () => stream.close();
    this.#stopping.signal.addEventListener('abort', close);
    if (this.#stopping.signal.aborted || statusCode !== 200) close();
    stream.read();
    const timer = Number.isFinite(this.#streamMs) ? setTimeout(close, this.#streamMs) : undefined;
    await stream.ended;
    clearTimeout(timer);
    this.#stopping.signal.removeEventListener('abort', close);
  }
}

/** What its last id says of its ClickHouse server. */
export function originOf({ lastEventId = '' }: StreamFollower) {
  return decodePosition(lastEventId)?.origin;
}

/** Waits until each client was told where it is in its stream. */
export async function untilAllListen(followers: readonly StreamFollower[]): Promise<void> {
  await until('all clients to listen', async () => followers.every(({ lastEventId }) => lastEventId !== undefined));
}

/** Waits until each client is at a ClickHouse server of this name. */
export async function untilAllAt(followers: readonly StreamFollower[], server: string): Promise<void> {
  await eventually(() => followers.map((follower) => originOf(follower)?.server)).toEqual(followers.map(() => server));
}

/** Waits until a load has had more submissions accepted, and each client was sent more events. */
export async function untilAllGoOn(
  load: Pick<Load, 'acceptedSoFar'>,
  followers: readonly StreamFollower[],
): Promise<void> {
  const [accepted, received] = [load.acceptedSoFar(), followers.map((follower) => follower.received.length)];
  await eventually(load.acceptedSoFar).toBeGreaterThan(accepted + 20);
  for (const [index, follower] of followers.entries()) {
    await eventually(() => follower.received.length).toBeGreaterThan((received[index] ?? 0) + 10);
  }
}

/** Waits until a server has recorded its progress so long ago that every client can go on there. */
export async function untilKnown(followers: readonly StreamFollower[], url: string, database: string): Promise<void> {
  const sql = 'SELECT toUnixTimestamp64Milli(min(recorded_at)) FROM storing_progress HAVING count() > 0';
  await until('each stream to have where to go on', async () => {
    const first = await readClickHouse(url, sql, { database });
    const sentMs = Math.min(...followers.map((follower) => originOf(follower)?.throughMs ?? 0));
    return first !== '' && sentMs >= Number(first) + CLOCKS_MS;
  });
}

/** Waits until a stream that begins now at one of some servers can go on at every other: until all of them have run for a while. */
export async function untilAllCanTakeOver(urls: readonly string[], database: string): Promise<void> {
  const sql = `
    SELECT toUnixTimestamp64Milli(min(recorded_at)), toUnixTimestamp64Milli(max(through))
    FROM storing_progress HAVING count() > 0 FORMAT JSONCompactEachRow`;
  await until('each server to know where streams of the others go on', async () => {
    // The first server has its tables before the others.
    const rows = await Promise.all(urls.map((url) => readClickHouse(url, sql, { database }).catch(() => '')));
    const known = rows.filter((row) => row !== '').map((row) => JSON.parse(row).map(Number) as [number, number]);
    const firstMs = Math.max(...known.map(([first]) => first));
    return known.length === urls.length && known.every(([, throughMs]) => throughMs >= firstMs + CLOCKS_MS);
  });
}

/** An event that is sent again after the deletion of its user is a new one: it was received at another time. */
export function identityOf({ uuid, timestamp, receivedAt }: Partial<Record<keyof EventRecord, unknown>>): string {
  return `${uuid} ${timestamp} ${receivedAt}`;
}

/** Returns all events that match filters, which begin with `?` or are empty. */
export async function allOf(pipeline: Pipeline, filters: string, key: string): Promise<EventRecord[]> {
  const records: EventRecord[] = [];
  for (let cursor = ''; ; ) {
    const separator = filters === '' ? '?' : `${filters}&`;
    const { body } = await pipeline.get<EventPage>(`/events${separator}limit=1000&total=none${cursor}`, key);
    records.push(...body.results);
    if (body.nextCursor === null) return records;
    cursor = `&cursor=${body.nextCursor}`;
  }
}

/** Waits until a client was sent all events that match its filters, ends it, and checks that it was sent each once, without an error. */
export async function expectAllReceived(pipeline: Pipeline, follower: StreamFollower, filters: string): Promise<void> {
  const stored = new Set((await allOf(pipeline, filters, pipeline.key)).map(identityOf));
  expect(stored.size).toBeGreaterThan(0);
  const missing = () => [...stored.difference(new Set(follower.received))];
  await until('the last events to be sent', async () => missing().length === 0).catch(
    explain(() => `of ${stored.size} events ${missing().length} are missing, as ${missing().slice(0, 3).join(', ')}`),
  );
  await follower.stop();
  expect([follower.refusals, follower.problems]).toEqual([[], []]);
  // From one move to the next, each event comes once.
  for (const segment of follower.segments) expect(new Set(segment).size).toBe(segment.length);
}
