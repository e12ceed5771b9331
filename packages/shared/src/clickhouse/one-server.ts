import { subscribe } from 'node:diagnostics_channel';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { type ClickHouseConfig, isReplicated, isShared } from '../config/config.ts';
import { type ClickHouseClient, createClickHouse } from './client.ts';

/** Sluice cannot work with what answers at the address of ClickHouse. */
export class UnusableServer extends Error {
  override readonly name: string = 'UnusableServer';
}

/** What answers at the address of ClickHouse is not one server with a database of its own. */
export class NotOneServer extends UnusableServer {
  override readonly name = 'NotOneServer';
  /** The names of the hosts that answered. */
  readonly hosts: readonly string[];

  constructor(message: string, hosts: readonly string[]) {
    super(message);
    this.hosts = hosts;
  }
}

/** The oldest version of ClickHouse that the migrations run on. */
export const CLICKHOUSE_VERSION_MIN = [25, 4] as const;

/** What to do with a cluster. */
const CLUSTER = 'docs/operate/existing-cluster.md';

/** How many connections are compared. A load balancer gives each to a server. */
const CONNECTIONS = 4;

/** Databases that their servers copy to one another. */
const REPLICATED = ['Replicated', 'Shared'];

/**
 * Looks whether one server answers over several connections, and whether its database, if it is there, is its own. Batches are staged
 * in sessions, statements are ended by their ids, and a deletion is read after it was written: all of that needs the server that it
 * began with.
 *
 * @returns its name and port, as it says them
 * @throws {NotOneServer} when several servers answer, or the database is a replicated one
 */
export async function requireOneServer(config: ClickHouseConfig): Promise<string> {
  return onlyOneOf(await askServers(config));
}

/**
 * {@link requireOneServer}, of a version that the migrations run on, whose tables are as CLICKHOUSE_REPLICATION says: a writer that does not know
 * of replicas would not tell them that it takes over. Where replicas share the rows, any of them may answer.
 *
 * @throws {UnusableServer}
 */
export async function requireUsableServer(config: ClickHouseConfig): Promise<void> {
  const answers = await askServers(config);
  for (const { version } of answers) {
    if (isTooOld(version))
      throw new UnusableServer(
        `ClickHouse ${version} is too old: ${CLICKHOUSE_VERSION_MIN.join('.')} or newer is needed (docs/operate/engines.md)`,
      );
  }
  // All replicas have the same rows there.
  if (!isShared(config)) onlyOneOf(answers);
  rejectWrongReplication(config, answers[0]);
}

/**
 * Looks whether the tables of a server are as CLICKHOUSE_REPLICATION says.
 *
 * @throws {UnusableServer} when they are not
 * @throws ClickHouse's errors
 */
export async function requireReplication(config: ClickHouseConfig): Promise<void> {
  const [answer] = await askServers(config, 1);
  rejectWrongReplication(config, answer);
}

function rejectWrongReplication(config: ClickHouseConfig, answer: ServerAnswer | undefined): void {
  const wrong = wrongReplication(config, answer?.tableEngine ?? '');
  if (wrong !== undefined) throw new UnusableServer(wrong);
}

/**
 * Returns what is wrong where tables are replicated and CLICKHOUSE_REPLICATION is not set, or the other way round; undefined: nothing.
 *
 * @param engine of a table; empty where there is none yet
 */
export function wrongReplication(
  config: Pick<ClickHouseConfig, 'CLICKHOUSE_REPLICATION'>,
  engine: string,
): string | undefined {
  if (engine === '') return undefined;
  if (isShared(config)) return engine.startsWith('Shared') ? undefined : notShared('events', engine);
  if (engine.startsWith('Replicated') === isReplicated(config)) return undefined;
  return isReplicated(config)
    ? `the tables of the database are plain ones, which do not become replicated: begin with an empty database on each replica (${CLUSTER}#replicated-tables)`
    : `the tables of the database are replicated: set CLICKHOUSE_REPLICATION=replicated for writers, query-api and commands (${CLUSTER}#replicated-tables)`;
}

/**
 * Looks whether replicas share the rows of all tables of a database, as those of ClickHouse Cloud do. Behind one address each of several servers
 * would otherwise have some of the rows.
 *
 * @throws {UnusableServer}
 */
export async function requireSharedTables(client: ClickHouseClient): Promise<void> {
  const result = await client.query({
    query:
      "SELECT name, engine FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree' ORDER BY name",
    format: 'JSONEachRow',
  });
  const tables = await result.json<{ name: string; engine: string }>();
  const other = tables.find(({ engine }) => !engine.startsWith('Shared'));
  if (!other) return;
  throw new UnusableServer(notShared(other.name, other.engine));
}

function notShared(table: string, engine: string): string {
  return (
    `with CLICKHOUSE_REPLICATION=shared replicas have to share the rows of tables, as in ClickHouse Cloud, and ${table} has the engine ` +
    `${engine}, whose rows are each server's own (${CLUSTER})`
  );
}

/** Whether the migrations do not run on this version of ClickHouse. */
export function isTooOld(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [majorMin, minorMin] = CLICKHOUSE_VERSION_MIN;
  return major < majorMin || (major === majorMin && minor < minorMin);
}

/** Returns what answers over several connections at once. */
async function askServers(config: ClickHouseConfig, connections = CONNECTIONS): Promise<readonly ServerAnswer[]> {
  // The database may be there on one of several servers alone.
  const client = createClickHouse(
    { ...config, CLICKHOUSE_DATABASE: 'default' },
    { application: 'sluice-one-server', requestTimeoutMs: 10_000, connectionsMax: connections },
  );
  const query = `SELECT toString(serverUUID()) AS server, hostName() AS host, concat(host, ':', toString(tcpPort())) AS address,
    version() AS version, (SELECT any(engine) FROM system.databases WHERE name = {database:String}) AS engine,
    (SELECT any(engine) FROM system.tables WHERE database = {database:String} AND name = 'events') AS tableEngine`;
  const query_params = { database: config.CLICKHOUSE_DATABASE };
  try {
    const answers = Array.from({ length: connections }, async () => {
      const result = await client.query({ query, query_params, format: 'JSONEachRow' });
      return await result.json<ServerAnswer>();
    });
    return (await Promise.all(answers)).flat();
  } finally {
    await client.close();
  }
}

interface ServerAnswer {
  readonly server: string;
  readonly host: string;
  readonly address: string;
  readonly version: string;
  readonly engine: string | null;
  readonly tableEngine: string | null;
}

function onlyOneOf(found: readonly ServerAnswer[]): string {
  const servers = new Map(found.map(({ server, address }) => [`${server} ${address}`, address]));
  const hosts = [...new Set(found.map(({ host }) => host))].sort();
  if (servers.size > 1) throw severalServers([...servers.values()], hosts);
  const { address = '', engine } = found[0] ?? {};
  if (engine && REPLICATED.includes(engine)) {
    throw new NotOneServer(
      `the database has the engine ${engine}, whose servers copy it to one another; create it with ENGINE = Atomic, each server its own (${CLUSTER})`,
      hosts,
    );
  }
  return address;
}

function severalServers(names: readonly string[], hosts: readonly string[]): NotOneServer {
  return new NotOneServer(
    `several servers answer at the address of ClickHouse (${names.toSorted().join(', ')}), such as behind a load balancer; give the address of one, or a file of servers (${CLUSTER})`,
    hosts,
  );
}

/** A server that answers again so soon after another one has was not replaced by it, in milliseconds. */
const TURN_MS_MAX = 60_000;

/** Finds out that several servers answer by turns. A server may be replaced by another one, which has another name. */
export class AnsweringServers {
  readonly #answeredAtMs = new Map<string, number>();
  #last: string | undefined;

  /** Notes that a server has answered. Returns the names of two that answer by turns, if it is one of them. */
  note(name: string, nowMs: number): readonly string[] | undefined {
    const [last, before] = [this.#last, this.#answeredAtMs.get(name)];
    this.#answeredAtMs.set(name, nowMs);
    this.#last = name;
    const isTurn = last !== undefined && last !== name && before !== undefined && nowMs - before <= TURN_MS_MAX;
    return isTurn ? [last, name] : undefined;
  }
}

/**
 * Watches who answers at the address of ClickHouse, by a header of each response, and calls back when several servers do. A cluster that gets
 * a second server behind the address of its first one would otherwise be noticed by nobody: half of the answers would lack rows.
 */
export function watchForOneServer(
  { CLICKHOUSE_URL }: ClickHouseConfig,
  onSeveral: (error: NotOneServer) => void,
): void {
  const { host } = new URL(CLICKHOUSE_URL);
  const servers = new AnsweringServers();
  subscribe('http.client.response.finish', (message) => {
    const { request, response } = message as { request: ClientRequest; response: IncomingMessage };
    const name = response.headers['x-clickhouse-server-display-name'];
    if (typeof name !== 'string' || request.getHeader('host') !== host) return;
    const names = servers.note(name, performance.now());
    if (names) onSeveral(severalServers(names, names));
  });
}
