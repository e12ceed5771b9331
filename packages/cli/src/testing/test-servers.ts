import { type ChildProcess, execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { createLogger } from '@sluice/shared/base/log';
import { type ClickHouseClient, createClickHouse } from '@sluice/shared/clickhouse/client';
import { ADMINISTRATOR, WRITER_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { createDatabase, type TestDatabase, takeDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { kafkaEnv, loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { createTopics } from '@sluice/shared/kafka/testing/create-topics';
import { topicNames } from '@sluice/shared/kafka/topics';
import { inherited } from '@sluice/shared/testing/inherited';
import { programFile } from '@sluice/shared/testing/program-file';
import { type DatabaseOwner, OwnDatabase } from '@sluice/storage/clickhouse/own-database';
import type { Kafka } from 'kafkajs';
import { z } from 'zod';

export const PARTITIONS = 2;

export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface StartedCommand {
  readonly child: ChildProcess;
  readonly ended: Promise<Outcome>;
}

/** A database that stands for a ClickHouse server of its own. */
export interface TestServer {
  readonly name: string;
  readonly database: string;
  readonly group: string;
  /** Logs in as the administrator. */
  readonly client: ClickHouseClient;
  insert(table: string, ...rows: readonly object[]): Promise<void>;
  read<Row>(query: string, params?: Readonly<Record<string, unknown>>): Promise<Row[]>;
  /** Records whose the database is, as its writers do. */
  identify(): Promise<unknown>;
}

/** Several databases of one engine in a file of servers, with topics of their own. */
export interface TestServers extends AsyncDisposable {
  /** The environment of the commands. */
  readonly env: Readonly<Record<string, string>>;
  readonly kafka: Kafka;
  readonly topics: { readonly events: string; readonly entities: string };
  /** Runs `sluice` as an operator does, as a process of its own. */
  sluice(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<Outcome>;
  /** Starts `sluice` as an operator does, to be interrupted. */
  start(args: readonly string[], env?: Readonly<Record<string, string>>): StartedCommand;
  /** Replaces the file of servers. @param entries members of the entries, besides address and database */
  writeFile(entries: Readonly<Record<string, object>>): Promise<string>;
}

/** Where no server listens. */
export const NOWHERE = 'http://127.0.0.1:1';

export interface TestServersOptions<Name extends string> {
  /** How many partitions each topic has. Default: {@link PARTITIONS}. */
  readonly partitions?: number;
  /** The ranges of servers; the others have all partitions. */
  readonly ranges?: Readonly<Partial<Record<Name, string>>>;
  /** Whether tests do to the tables what outlasts emptying them. Default: no. */
  readonly altersTables?: boolean;
}

/** Opens the databases of servers, each with the tables and its identity, and topics without messages. */
export async function startServers<Name extends string>(
  engines: { readonly clickhouseUrl: string; readonly kafkaBrokers: readonly string[] },
  names: readonly Name[],
  { partitions = PARTITIONS, ranges, altersTables = false }: TestServersOptions<Name> = {},
): Promise<TestServers & { readonly of: Readonly<Record<Name, TestServer>> }> {
  const rangeOf = (name: string) => (ranges as Readonly<Record<string, string>> | undefined)?.[name];
  await using started = new AsyncDisposableStack();
  const folder = started.use(await makeTempDir());
  const path = join(folder.path, 'servers.json');
  const prefix = `cli-${randomUUID()}.`;
  const env = {
    ...inherited(),
    CLICKHOUSE_SERVERS_FILE: path,
    KAFKA_BROKERS: engines.kafkaBrokers.join(','),
    KAFKA_TOPIC_PREFIX: prefix,
    KAFKA_PARTITIONS: String(partitions),
    KAFKA_GROUP_ID: `${prefix}writer`,
    ...WRITER_ACCOUNT,
  };
  const config = loadConfig(z.object(kafkaEnv), env);
  const kafka = createKafka(config, 'test', createLogger('test', 'silent'));
  const topics = topicNames(config);
  await createTopics(
    kafka,
    Object.values(topics).map((topic) => ({ topic, numPartitions: partitions })),
  );
  const servers = await Promise.all(
    names.map((name) => {
      const owner = { server: name, group: `${prefix}writer.${name}`, partitions: rangeOf(name) ?? 'all' };
      return startServer(owner, engines.clickhouseUrl, altersTables ? createDatabase : takeDatabase, started);
    }),
  );
  const native = await nativeAddress(servers[0]);
  const of = Object.fromEntries(servers.map((server) => [server.name, server])) as Record<Name, TestServer>;
  const write = async (entries: Readonly<Record<string, object>>) => {
    const content = Object.entries(entries).map(([name, entry]) => {
      const { database } = (of as Record<string, TestServer>)[name] ?? {};
      return { name, url: engines.clickhouseUrl, native, database, partitions: rangeOf(name), ...entry };
    });
    await writeFile(`${path}.new`, JSON.stringify({ servers: content }));
    await rename(`${path}.new`, path);
    return path;
  };
  // Servers with ranges are filled, and read later.
  if (names.length > 0)
    await write(Object.fromEntries(names.map((name) => [name, { serves: rangeOf(name) === undefined }])));
  for (const server of servers) await server.identify();
  const start: TestServers['start'] = (args, more = {}) => {
    const { promise: ended, resolve } = Promise.withResolvers<Outcome>();
    const options = { env: { ...env, ...more } };
    const child = execFile(process.execPath, [programFile('sluice'), ...args], options, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr });
    });
    return { child, ended };
  };
  const owned = started.move();
  return {
    ...{ env, kafka, topics, of, writeFile: write, start },
    sluice: (args, more) => start(args, more).ended,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Joins the group of a server, as its writers do. */
export async function startMember(
  { kafka, topics }: TestServers,
  { group: groupId }: TestServer,
): Promise<AsyncDisposable> {
  const consumer = kafka.consumer({ groupId });
  const joined = new Promise((resolve) => consumer.on('consumer.group_join', resolve));
  await consumer.connect();
  await consumer.subscribe({ topic: topics.events });
  await consumer.run({ eachMessage: async () => undefined });
  await joined;
  return { [Symbol.asyncDispose]: () => consumer.disconnect() };
}

/** Returns where the engine reaches itself over the native protocol. */
async function nativeAddress(server: TestServer | undefined): Promise<string | undefined> {
  const [row] = (await server?.read<{ port: number }>('SELECT tcpPort() AS port')) ?? [];
  return row && `127.0.0.1:${row.port}`;
}

async function startServer(
  owner: DatabaseOwner,
  url: string,
  open: (url: string) => Promise<TestDatabase>,
  started: AsyncDisposableStack,
): Promise<TestServer> {
  const database = await open(url);
  started.defer(() => database.release());
  const options = { application: 'test', requestTimeoutMs: 240_000, connectionsMax: 2 };
  const client = createClickHouse({ ...database.config, ...ADMINISTRATOR }, options);
  started.defer(() => client.close());
  return {
    ...{ name: owner.server, group: owner.group, client, database: database.config.CLICKHOUSE_DATABASE },
    async insert(table, ...values) {
      await client.insert({ table, values, format: 'JSONEachRow' });
    },
    async read<Row>(query: string, query_params: Readonly<Record<string, unknown>> = {}) {
      const result = await client.query({ query, query_params: { ...query_params }, format: 'JSONEachRow' });
      return await result.json<Row>();
    },
    identify: () => new OwnDatabase(client, owner).claim(),
  };
}

/** Returns what the database of a server says last of whether it has everything. */
export async function stateOf(server: TestServer) {
  const [row] = await server.read<{ state: string; detail: string }>(
    'SELECT state, detail FROM database_identity ORDER BY recorded_at DESC LIMIT 1',
  );
  return row;
}

/** Records how far behind Kafka a server is, as its writers do. */
export async function recordProgress(server: TestServer, behindSeconds = 0): Promise<void> {
  await server.client.command({
    query: 'INSERT INTO storing_progress SELECT now64(3), now64(3) - toIntervalSecond({behindSeconds:UInt32}), 0',
    query_params: { behindSeconds },
  });
}
