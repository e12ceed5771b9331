import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { loginOf } from '@sluice/shared/clickhouse/connection';
import { createDatabase, type TestDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import type { QueryConfig } from '../config.ts';
import { samplesOf } from '../manage/pipeline/service-metrics.ts';
import type { ClickHouseReader, ReadRequest } from '../store/clickhouse-reader.ts';
import { ConnectionFailure } from '../store/read-failures.ts';
import {
  administratorOf,
  connectReader,
  connectWebhooks,
  insertInto,
  type QueryService,
  startApp,
  type TestApp,
} from './query-service.ts';

/** What becomes of the queries that a mirror is sent. */
type Behaviour = 'answers' | 'refuses' | 'is silent' | 'holds requests' | 'breaks off after the first rows';

/** A database that stands for a ClickHouse server of its own. */
export interface Mirror extends Pick<QueryService, 'insert' | 'store'> {
  readonly name: string;
  readonly clickHouse: ClickHouseClient;
  /** From now on queries are treated so; those that run end when it is not `answers`. Default: it answers. */
  behaviour: Behaviour;
  /** Returns the number of queries of requests that it was sent. */
  readonly queries: () => number;
  /** Records what its database says of itself, as its writers do. */
  identify(identity?: {
    readonly server?: string;
    readonly partitions?: string;
    readonly state?: string;
    readonly id?: string;
  }): Promise<void>;
  /**
   * Records that it is so far behind Kafka, as its writers do.
   *
   * @param behindMs default: not at all
   * @param atMs when it was recorded, in milliseconds since 1970; default: now
   */
  progress(behindMs?: number, atMs?: number): Promise<void>;
}

/** The app over several mirrors. */
export interface Mirrors extends TestApp {
  readonly mirrors: readonly Mirror[];
  /** Replaces the file of servers by one with these mirrors. @param partitions of each; default: all */
  writeFile(names: readonly string[], partitions?: string): Promise<void>;
}

/**
 * Starts the app over mirrors, each with a record of its identity and of its progress. The first one has the consumer group from
 * before there was a file.
 */
export async function startMirrors<Name extends string>(
  url: string,
  names: readonly Name[],
  env: Readonly<Record<string, string>> = {},
  database: (url: string) => Promise<TestDatabase> = createDatabase,
): Promise<Mirrors & { readonly [One in Name]: Mirror }> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-servers-'));
  const path = join(folder, 'servers.json');
  const databases = await Promise.all(names.map(() => database(url)));
  const mirrors = names.map((name, index) => createMirror(name, databases[index]?.config as never));
  const groupOf = (name: string) => (name === names[0] ? 'g' : `g.${name}`);
  const write = async (some: readonly string[], partitions?: string) => {
    const servers = mirrors
      .filter(({ name }) => some.includes(name))
      .map(({ name, database }) => ({ name, url, database, group: groupOf(name), partitions }));
    await writeFile(path, JSON.stringify({ servers }));
  };
  await write(names);
  for (const mirror of mirrors) {
    await mirror.identify();
    await mirror.progress();
  }
  let webhooks: ClickHouseClient | undefined;
  const connected = (config: QueryConfig) => {
    webhooks = connectWebhooks(config);
    return webhooks;
  };
  // What polls on a busy machine add to the lag changes nothing, nor does a record that nobody renews.
  const patient = { READ_LAG_MS_MAX: '60000', READ_STALE_MS_MAX: '600000' };
  const service = await startApp(
    { ...databases[0]?.config, CLICKHOUSE_SERVERS_FILE: path, ...patient, ...env } as never,
    (config) => ({
      // On the first one.
      webhooks: connected(config),
      connectWebhooks: (place) => connectWebhooks(config, place) as ClickHouseClient,
      source: {
        path,
        defaults: { database: 'sluice', group: 'g' },
        login: loginOf(config),
        connect: ({ name, database }) => {
          const mirror = mirrors.find((one) => one.name === name);
          const reader = connectReader({ ...config, CLICKHOUSE_DATABASE: database });
          return mirror ? mirror.wrap(reader) : reader;
        },
      },
      readiness: async () => [],
    }),
  );
  return {
    ...service,
    ...(Object.fromEntries(mirrors.map((mirror) => [mirror.name, mirror])) as never as {
      readonly [One in Name]: Mirror;
    }),
    mirrors,
    writeFile: write,
    async stop() {
      for (const mirror of mirrors) mirror.behaviour = 'answers';
      await service.stop();
      await webhooks?.close();
      await Promise.all(mirrors.map(({ clickHouse }) => clickHouse.close()));
      await Promise.all(databases.map(({ release }) => release()));
      await rm(folder, { recursive: true });
    },
  };
}

/** Returns the values of a metric by server. */
export async function valuesByServer({ app }: Mirrors, metric: string): Promise<Readonly<Record<string, number>>> {
  const { body } = await app.inject('/metrics');
  return Object.fromEntries(samplesOf(body, metric).map(({ labels, value }) => [labels['server'] ?? '', value]));
}

function createMirror(name: string, config: Parameters<typeof administratorOf>[0]) {
  const clickHouse = administratorOf(config);
  const { insert, store } = insertInto(clickHouse);
  const counts = { queries: 0 };
  const control = {
    behaviour: 'answers' as Behaviour,
    changed: new AbortController(),
    /** Of polls. */
    gone: new AbortController(),
  };
  const isSilent = () => control.behaviour === 'is silent';
  return {
    name,
    database: config.CLICKHOUSE_DATABASE,
    clickHouse,
    insert,
    store,
    queries: () => counts.queries,
    get behaviour() {
      return control.behaviour;
    },
    set behaviour(behaviour: Behaviour) {
      control.behaviour = behaviour;
      control.changed.abort();
      control.changed = new AbortController();
      if (behaviour !== 'refuses' && behaviour !== 'is silent') return;
      control.gone.abort();
      control.gone = new AbortController();
    },
    async identify({ server = name, partitions = 'all', state = 'complete', id = IDENTITY } = {}) {
      await insert('database_identity', [
        { id, server, group_id: `g.${name}`, partitions, state, detail: '', recorded_at: Date.now() * 1_000 },
      ]);
    },
    async progress(behindMs = 0, atMs = Date.now()) {
      await clickHouse.command({
        query: `INSERT INTO storing_progress
          WITH fromUnixTimestamp64Milli({at_ms:Int64}) AS recorded
          SELECT recorded, recorded - toIntervalMillisecond({behind_ms:UInt64}), max(_block_number) FROM events`,
        query_params: { behind_ms: behindMs, at_ms: atMs },
      });
    },
    wrap(reader: ClickHouseReader): ClickHouseReader {
      async function* controlled<Item>(
        request: ReadRequest,
        read: (request: ReadRequest) => AsyncGenerator<Item, void, undefined>,
      ): AsyncGenerator<Item, void, undefined> {
        const isPoll = request.queryId.includes('server_state');
        if (!isPoll) counts.queries += 1;
        while (!isPoll && control.behaviour === 'holds requests') {
          await once(AbortSignal.any([request.signal, control.changed.signal]), 'abort');
          request.signal.throwIfAborted();
        }
        const { signal: changed } = isPoll ? control.gone : control.changed;
        const fail = () => new ConnectionFailure(`${name} ${control.behaviour}`);
        if (control.behaviour === 'refuses') throw fail();
        while (isSilent()) await silence(request.signal);
        const signal = AbortSignal.any([request.signal, changed]);
        try {
          for await (const item of read({ ...request, signal })) {
            yield item;
            if (!isPoll && control.behaviour === 'breaks off after the first rows') throw fail();
          }
        } catch (error) {
          request.signal.throwIfAborted();
          if (!changed.aborted) throw error;
          while (isSilent()) await silence(request.signal);
          throw fail();
        }
      }
      return {
        read: (request) => controlled(request, (one) => reader.read(one)),
        readBytes: (request) => controlled(request, (one) => reader.readBytes(one)),
        close: () => reader.close(),
      };
    },
  };
}

const IDENTITY = '0190a0a0-0000-7000-8000-00000000000a';

/** Rejects when the signal aborts. */
async function silence(signal: AbortSignal): Promise<void> {
  await new Promise<never>((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener('abort', () => reject(signal.reason));
  });
}
