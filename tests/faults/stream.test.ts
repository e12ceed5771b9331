import { sleep } from '@sluice/shared/retry';
import { EventStream } from '@sluice/shared/testing/event-stream';
import { until } from '@sluice/shared/testing/until';
import { expect, inject, test } from 'vitest';
import { ownClickHouse } from '../support/engines.ts';
import { startLoad } from '../support/load.ts';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';
import type { EventPage, EventRecord } from '../support/records.ts';

/** A client that connects again whenever its stream ends, as browsers do, and keeps all that it was sent. */
class Follower {
  /** Statuses of responses other than 200, and than 503 while ClickHouse is away. */
  readonly refusals: number[] = [];
  readonly #pipeline: Pipeline;
  readonly #filters: string;
  readonly #key: string;
  readonly #streams: EventStream[] = [];
  readonly #stopping = new AbortController();
  readonly #following: Promise<void>;

  constructor(pipeline: Pipeline, filters: string, key: string) {
    this.#pipeline = pipeline;
    this.#filters = filters;
    this.#key = key;
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
    return this.#streams.flatMap(({ events }) => events.map(({ record }) => identityOf(record)));
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#following;
  }

  async #follow(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const url = `${this.#pipeline.services['query-api'].url}/events/stream${this.#filters}`;
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
    else if (statusCode !== 503) this.refusals.push(statusCode);
    const close = () => stream.close();
    this.#stopping.signal.addEventListener('abort', close);
    if (this.#stopping.signal.aborted || statusCode !== 200) close();
    stream.read();
    await stream.ended;
    this.#stopping.signal.removeEventListener('abort', close);
  }
}

/** An event that is sent again after the deletion of its user is a new one: it was received at another time. */
function identityOf({ uuid, timestamp, receivedAt }: Partial<Record<keyof EventRecord, unknown>>): string {
  return `${uuid} ${timestamp} ${receivedAt}`;
}

async function allOf(pipeline: Pipeline, filters: string, key: string): Promise<EventRecord[]> {
  const records: EventRecord[] = [];
  for (let cursor = ''; ; ) {
    const separator = filters === '' ? '?' : `${filters}&`;
    const { body } = await pipeline.get<EventPage>(`/events${separator}limit=1000&total=none${cursor}`, key);
    records.push(...body.results);
    if (body.nextCursor === null) return records;
    cursor = `&cursor=${body.nextCursor}`;
  }
}

test('clients of the stream get each event once, in their workspace, while query-api and ClickHouse are killed', async () => {
  await using clickhouse = await ownClickHouse();
  const kafkaBrokers = inject('kafkaBrokers');
  await using running = await startPipeline({ kafkaBrokers, clickhouseUrl: clickhouse.url, name: 'stream' });
  const otherKey = await running.addKey('other');
  const filters = ['', '?properties.key[contains]=1&userId[exists]=true', '?event[ne]=nothing'];
  const followers = [running.key, otherKey].flatMap((key) =>
    filters.map((filter) => ({ key, filter, follower: new Follower(running, filter, key) })),
  );
  await until('all clients to listen', async () =>
    followers.every(({ follower }) => follower.lastEventId !== undefined),
  );

  const urls = () => [running.services['ingest-api'].url];
  await using load = startLoad({ pipeline: running, urls, concurrency: 4 });
  await using otherLoad = startLoad({ pipeline: { key: otherKey }, urls, concurrency: 2, seed: 2 });
  for (let kill = 1; kill <= 2; kill += 1) {
    const before = load.acceptedSoFar();
    await until('more events', async () => load.acceptedSoFar() > before + 50);
    await running.services['query-api'].kill9();
    await running.restart('query-api');
    await clickhouse.kill9();
    await until('events that wait in Kafka', async () => load.acceptedSoFar() > before + 100);
    await clickhouse.restart();
  }
  await load.stop();
  await otherLoad.stop();
  await running.drained();

  const everything = new Map<string, Set<string>>();
  for (const { key, filter, follower } of followers) {
    const stored = new Set((await allOf(running, filter, key)).map(identityOf));
    expect(stored.size).toBeGreaterThan(0);
    await until('the last events to be sent', async () => stored.isSubsetOf(new Set(follower.received)));
    await follower.stop();
    expect(follower.refusals).toEqual([]);
    expect(follower.connections).toBeGreaterThan(2);
    // Events of users who were deleted since may have been sent before; nothing was sent twice.
    expect(new Set(follower.received).size).toBe(follower.received.length);
    if (filter === '') everything.set(key, new Set(follower.received));
    expect(new Set(follower.received).isSubsetOf(everything.get(key) ?? new Set())).toBe(true);
  }
  const [ofOne = new Set(), ofOther = new Set()] = everything.values();
  expect(ofOne.isDisjointFrom(ofOther)).toBe(true);
}, 600_000);
