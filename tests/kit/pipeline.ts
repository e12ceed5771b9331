import { randomBytes } from 'node:crypto';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePorts } from '@sluice/local-stack/ports';
import { ADMINISTRATOR, QUERY_ACCOUNT, WRITER_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { createNewest } from '@sluice/shared/clickhouse/testing/test-database';
import { generateKey, hashKey, type KeyEntry, SCOPES, type Scope, writeKeysFile } from '@sluice/shared/keys/keys-file';
import { parseRange } from '@sluice/shared/servers/partition-range';
import { explain, until } from '@sluice/shared/testing/until';
import { parseJson } from '@sluice/shared/text/json';
import { readClickHouse } from './clickhouse.ts';
import { waitUntilCommitted } from './committed.ts';
import { type Service, type ServiceName, schemeOf, startService } from './service.ts';

/** A ClickHouse server of several, as the file of servers has it. */
export interface PipelineServer {
  readonly url: string;
  /** Host and port of its native protocol. Default: the usual port of the host. */
  readonly native?: string;
  /** Default: that of the pipeline. */
  readonly database?: string;
  /** The consumer group of its writers; default: that of the pipeline, with the name of the server. */
  readonly group?: string;
  /** A range such as `0-2`; default: all. */
  readonly partitions?: string;
  /** Default: true. */
  readonly serves?: boolean;
}

/** An older version does not read a keys file that has another one. */
const SCOPES_OF_OLDER_VERSIONS: readonly Scope[] = ['ingest', 'query', 'delete'];

export interface PipelineOptions {
  readonly kafkaBrokers: readonly string[];
  readonly clickhouseUrl: string;
  /** Several ClickHouse servers, by name, in place of that of `clickhouseUrl`. Each gets a writer. */
  readonly servers?: Readonly<Record<string, PipelineServer>>;
  /**
   * Names the topics and the consumer group: letters and digits. No two pipelines on one Kafka may share it, in whichever
   * files they are: the second one's database would have no positions of what the group has committed.
   */
  readonly name: string;
  /** Default: a name of its own. */
  readonly database?: string;
  /** Added to every service's environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Added to the environment of one service. */
  readonly envOf?: Readonly<Partial<Record<ServiceName, Readonly<Record<string, string>>>>>;
  /** The folder of the repository that the services run from. Default: this one. */
  readonly checkout?: string;
  /** Another key of all scopes for each of these workspaces. */
  readonly keys?: Readonly<Record<string, string>>;
}

export interface ServiceResponse<Body> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
}

/** The three services on real engines, each a process, with a key of all scopes for the workspace `test`. */
export interface Pipeline extends AsyncDisposable {
  /** With several servers, the writer is that of the first one. */
  readonly services: Record<ServiceName, Service>;
  /** The first writers of several servers, by the names of these. */
  readonly writers: Record<string, Service>;
  readonly key: string;
  readonly database: string;
  readonly keysFile: string;
  /** The environment of its writer, without its address. */
  readonly environment: Readonly<Record<string, string>>;
  /** The environment of one of its services, without the address. */
  environmentOf(name: ServiceName): Readonly<Record<string, string>>;
  /** Creates another key, and waits until it is in force. */
  addKey(workspace: string, scopes?: readonly Scope[]): Promise<string>;
  /** Creates a given key of all scopes for each of these workspaces, and waits until they are in force. */
  addKeys(keys: Readonly<Record<string, string>>): Promise<void>;
  /** Starts a service that has ended again, on the same address, and waits until it is ready. */
  restart(name: ServiceName): Promise<void>;
  /** Kills a service, and starts it again as a supervisor would. */
  killAndRestart(name: ServiceName): Promise<void>;
  /** Starts a service again whenever it ends, as a supervisor does. */
  supervise(name: ServiceName): void;
  /** Starts another process of a service, on another address. @param env added to the environment of the service */
  startAnother(name: ServiceName, env?: Readonly<Record<string, string>>): Promise<Service>;
  /** Starts another writer, of a server of the file. */
  startWriter(server: string): Promise<Service>;
  /** Replaces the file of servers. */
  writeServers(servers: Readonly<Record<string, PipelineServer>>): Promise<void>;
  /** Starts a process in the place of one that has ended, on the same address. @param checkout default: that of the ended */
  replace(ended: Service, checkout?: string): Promise<Service>;
  submit<Body = { events: { uuid: string }[] }>(
    body: unknown,
    init?: RequestInit & { path?: string; key?: string },
  ): Promise<ServiceResponse<Body>>;
  /** GET from query-api. */
  get<Body>(path: string, key?: string): Promise<ServiceResponse<Body>>;
  deleteUser(foreignId: string, key?: string): Promise<ServiceResponse<unknown>>;
  /** Waits until the writers have stored and committed everything that is in Kafka. */
  drained(): Promise<void>;
  /** Waits until `total` events are visible in the workspace of the key; throws if there are more. */
  settled(total: number, key?: string): Promise<void>;
  stop(): Promise<void>;
}

/** The account of each service in ClickHouse. */
const ACCOUNT_OF: Readonly<Record<ServiceName, Readonly<Record<string, string>>>> = {
  'ingest-api': {},
  writer: WRITER_ACCOUNT,
  'query-api': QUERY_ACCOUNT,
};

export async function startPipeline(options: PipelineOptions): Promise<Pipeline> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-pipeline-'));
  const keysFile = join(folder, 'keys.json');
  const entries: KeyEntry[] = [];
  // Pipelines of one name on different Kafkas must not share a database.
  const { database = `test_${options.name}_${randomBytes(4).toString('hex')}` } = options;
  const ports = await findFreePorts(3);
  const addresses: Record<ServiceName, number> = {
    'ingest-api': ports[0] ?? 0,
    writer: ports[1] ?? 0,
    'query-api': ports[2] ?? 0,
  };
  const scheme = schemeOf(options.env ?? {});
  const serversFile = join(folder, 'servers.json');
  /** The servers of the file. */
  let current = options.servers;
  const writeServers = async (servers: NonNullable<PipelineOptions['servers']>) => {
    current = servers;
    const entries = Object.entries(servers).map(([name, server]) => ({ name, ...server }));
    // In one step, as a mounted file changes.
    await writeFile(`${serversFile}.new`, JSON.stringify({ servers: entries }));
    await rename(`${serversFile}.new`, serversFile);
  };
  const serverNames = Object.keys(options.servers ?? {});
  if (options.servers) await writeServers(options.servers);
  const env = {
    INGEST_URLS: `${scheme}://127.0.0.1:${addresses['ingest-api']}`,
    WRITER_URL: `${scheme}://127.0.0.1:${addresses.writer}`,
    REPLAY_URL: `${scheme}://127.0.0.1:${addresses.writer}`,
    ...environment(options, { keysFile, serversFile, database }),
  };
  const extra: Service[] = [];
  let stopped = false;

  async function createKey(workspace: string, scopes: readonly Scope[], key = generateKey()): Promise<string> {
    entries.push({ id: `k${entries.length}`, hash: hashKey(key), workspace, scopes: [...scopes] });
    await writeKeysFile(keysFile, entries);
    return key;
  }

  const [firstServer] = serverNames;
  const environmentOf = (name: ServiceName, server = firstServer): Record<string, string> => ({
    ...env,
    ...ACCOUNT_OF[name],
    ...(name === 'writer' && server !== undefined && { CLICKHOUSE_SERVER: server }),
    ...options.envOf?.[name],
  });
  const start = (name: ServiceName, port = addresses[name], server = firstServer) =>
    startService(name, port, environmentOf(name, server), options.checkout);
  const scopes = options.checkout === undefined ? SCOPES : SCOPES_OF_OLDER_VERSIONS;
  const key = await createKey('test', scopes);
  for (const [workspace, given] of Object.entries(options.keys ?? {})) await createKey(workspace, scopes, given);
  // One group feeds replicas, and their writers create the tables; also those that replicas share.
  const replication = options.env?.['CLICKHOUSE_REPLICATION'];
  const areReplicas = replication === 'replicated';
  const stores: readonly PipelineServer[] = Object.values(options.servers ?? { '': { url: options.clickhouseUrl } });
  if (options.checkout === undefined && !areReplicas && replication !== 'shared') {
    // A writer creates what this account does not reach, such as a database behind TLS.
    const created = stores.map(({ url, database: own = database }) =>
      createNewest({ CLICKHOUSE_URL: url, CLICKHOUSE_DATABASE: own, ...ADMINISTRATOR }).catch(() => undefined),
    );
    await Promise.all(created);
  }
  const services = { writer: start('writer'), 'ingest-api': start('ingest-api'), 'query-api': start('query-api') };
  const writers: Record<string, Service> = firstServer === undefined ? {} : { [firstServer]: services.writer };
  for (const server of serverNames.slice(1)) writers[server] = start('writer', (await findFreePorts(1))[0], server);

  async function startExtra(begin: () => Service): Promise<Service> {
    const service = begin();
    extra.push(service);
    await service.ready();
    return service;
  }

  async function request<Body>(url: string, init: RequestInit, withKey: string): Promise<ServiceResponse<Body>> {
    const headers = new Headers(init.headers);
    if (withKey !== '') headers.set('authorization', `Bearer ${withKey}`);
    const response = await fetch(url, { ...init, headers });
    return { status: response.status, headers: response.headers, body: parseJson(await response.text()) as Body };
  }

  const get = <Body>(path: string, withKey = key) => request<Body>(`${services['query-api'].url}${path}`, {}, withKey);

  /** The last one of the keys that were created together is enough: they are written in their order. */
  const inForce = (added: string) =>
    until('the key to be in force', async () => {
      const ingest = await request(`${services['ingest-api'].url}/v1/users`, { method: 'DELETE' }, added);
      return ingest.status !== 401 && (await get('/events?limit=0&total=none', added)).status !== 401;
    });

  const pipeline: Pipeline = {
    services,
    writers,
    key,
    database,
    keysFile,
    environment: environmentOf('writer'),
    environmentOf,
    async addKey(workspace, scopes = SCOPES) {
      const added = await createKey(workspace, scopes);
      await inForce(added);
      return added;
    },
    async addKeys(keys) {
      let last: string | undefined;
      for (const [workspace, given] of Object.entries(keys)) last = await createKey(workspace, SCOPES, given);
      if (last !== undefined) await inForce(last);
    },
    async restart(name) {
      services[name] = services[name].again();
      await services[name].ready();
    },
    async killAndRestart(name) {
      await services[name].kill9();
      await pipeline.restart(name);
    },
    supervise(name) {
      void services[name].exited().then(() => {
        if (stopped) return;
        services[name] = services[name].again();
        pipeline.supervise(name);
      });
    },
    async startAnother(name, env = {}) {
      const [port = 0] = await findFreePorts(1);
      return await startExtra(() => startService(name, port, { ...environmentOf(name), ...env }, options.checkout));
    },
    async startWriter(server) {
      const [port] = await findFreePorts(1);
      return await startExtra(() => start('writer', port, server));
    },
    writeServers,
    replace: (ended, checkout) => startExtra(() => ended.again(checkout)),
    async submit<Body>(
      body: unknown,
      {
        path = '/v1/public/userGroups',
        key: withKey = key,
        ...init
      }: RequestInit & { path?: string; key?: string } = {},
    ) {
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      const headers = { 'content-type': 'application/json', ...(init.headers as Record<string, string>) };
      const url = `${services['ingest-api'].url}${path}`;
      return await request<Body>(url, { method: 'POST', ...init, body: text, headers }, withKey);
    },
    get,
    async deleteUser(foreignId, withKey = key) {
      const url = `${services['ingest-api'].url}/v1/users?foreignId=${encodeURIComponent(foreignId)}`;
      return await request(url, { method: 'DELETE' }, withKey);
    },
    async drained() {
      const { kafkaBrokers, name } = options;
      const groups = Object.entries(current ?? { '': {} }).map(
        ([server, { partitions = '' }]: [string, Partial<PipelineServer>]) => {
          const ownName = areReplicas ? partitions : server;
          return { suffix: ownName === '' ? '' : `.${ownName}`, partitions };
        },
      );
      for (const { suffix, partitions } of groups) {
        const groupId = `${env.KAFKA_GROUP_ID}${suffix}`;
        const stored = waitUntilCommitted(kafkaBrokers, name, groupId, parseRange(partitions));
        await stored.catch(withWritersLog(services));
      }
    },
    async settled(total, withKey = key) {
      let seen: number | null = null;
      let last = '';
      await until(`${total} events to be visible`, async () => {
        const { status, body } = await get<{ total: number | null }>('/events?limit=0', withKey);
        last = `${status} ${JSON.stringify(body)}`;
        seen = body.total;
        return seen !== null && seen >= total;
      }).catch(withWritersLog(services, () => `query-api responded ${last}.\n`));
      if (seen !== total) throw new Error(`${seen} events are visible, not ${total}`);
    },
    async stop() {
      stopped = true;
      await Promise.all([...Object.values({ ...writers, ...services }), ...extra].map((service) => service.kill9()));
      for (const { url, database: own = database } of stores) await dropDatabase(url, own);
      await rm(folder, { recursive: true, force: true });
    },
    [Symbol.asyncDispose]: () => pipeline.stop(),
  };
  try {
    await Promise.all(Object.values({ ...writers, ...services }).map((service) => service.ready()));
  } catch (error) {
    await pipeline.stop();
    throw error;
  }
  return pipeline;
}

/** Returns a function that adds to an error the end of the writer's log, which says why nothing is stored. */
function withWritersLog(services: Pipeline['services'], found = () => ''): (error: Error) => never {
  return explain(() => `${found()}The writer's log ends with:\n${services.writer.log().slice(-4_000)}`);
}

/** Otherwise its tables would cost the engine of all tests CPU time to the end. A test may have ended its own engine. */
async function dropDatabase(clickhouseUrl: string, database: string): Promise<void> {
  const sql = `DROP DATABASE IF EXISTS ${database} SYNC`;
  await readClickHouse(clickhouseUrl, sql, { signal: AbortSignal.timeout(10_000) }).catch(() => undefined);
}

interface PipelineFiles {
  readonly keysFile: string;
  readonly serversFile: string;
  readonly database: string;
}

function environment(options: PipelineOptions, { keysFile, serversFile, database }: PipelineFiles) {
  const store: Record<string, string> = options.servers
    ? { CLICKHOUSE_SERVERS_FILE: serversFile }
    : { CLICKHOUSE_URL: options.clickhouseUrl };
  return {
    ...store,
    KAFKA_BROKERS: options.kafkaBrokers.join(','),
    KAFKA_TOPIC_PREFIX: `${options.name}.`,
    KAFKA_GROUP_ID: `${options.name}-writer`,
    // Fewer than the default: hundreds of tests create their topics on one broker.
    KAFKA_PARTITIONS: '6',
    KAFKA_SESSION_TIMEOUT_MS: '6000',
    CLICKHOUSE_DATABASE: database,
    API_KEYS_FILE: keysFile,
    ERASURE_INTERVAL_MS: '1000',
    ERASURE_DELAY_MS: '5001',
    ERASURE_GATHER_MS: '0',
    STATEMENT_TIMEOUT_MS: '5000',
    // A busy machine must not turn a response into another one.
    QUERY_TIMEOUT_MS: '60000',
    COUNT_TIMEOUT_MS: '30000',
    ...options.env,
  };
}
