import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { Agent, createServer, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import type { LocalClickHouse } from '@sluice/local-stack/clickhouse';
import { type AccountOptions, statementsOf } from '@sluice/local-stack/clickhouse-accounts';
import { type LocalKeeper, startKeeper } from '@sluice/local-stack/keeper';
import { startNativeRelay } from '@sluice/local-stack/native-relay';
import { findFreePorts } from '@sluice/local-stack/ports';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { TEST_ACCOUNTS } from '@sluice/shared/clickhouse/testing/test-accounts';
import { ownClickHouse } from './engines.ts';
import { listening } from './http-server.ts';

/** A statement on its way to a replica. */
export interface CloudStatement {
  /** Its text, as far as it is no data. */
  readonly sql: string;
  /** Empty where the client has given none. */
  readonly queryId: string;
}

/** What happens to a statement besides that it is carried out. */
export interface Fate {
  /** Whether the client gets no response: its connection is cut before the statement is passed on. */
  readonly loses?: boolean;
  /** After how long it is passed on, in milliseconds. Default: at once. */
  readonly delayMs?: number;
}

export interface CloudOptions {
  /** Called with each statement. Default: each is carried out, and its response is passed on. */
  readonly fateOf?: (statement: CloudStatement) => Fate | undefined;
}

/** What stands in for ClickHouse Cloud. */
export interface Cloud extends AsyncDisposable {
  /** The address that leads each request to the next replica. */
  readonly url: string;
  readonly keeper: LocalKeeper;
  readonly servers: readonly LocalClickHouse[];
  /** Cuts all connections, and refuses others until the returned function is called. */
  cut(): () => void;
}

/** Seconds that a replica may take to get what others have. */
const SYNC_SECONDS_MAX = 20;

/** As the cluster of ClickHouse Cloud is called. */
const CLUSTER = 'default';

const ON_CLUSTER = new RegExp(`\\bON CLUSTER ${CLUSTER}\\b`, 'i');

const ENGINE = /\b(ENGINE = )((?:Replacing|Aggregating)?MergeTree)(?:\(([^)]*)\))?/g;

/** What replicas agree by. */
const PATH_AND_NAME = "'/clickhouse/tables/{shard}/{database}/{table}', '{replica}'";

/** The local engine has no such table, but a function that says the same of one server. Its sessions last for five seconds (`replicaConfigXml`). */
const SESSIONS = `(${CLUSTER}, system.zookeeper_connection)`;
const SESSIONS_OF_ENGINE = `(${CLUSTER}, view(SELECT zookeeperSessionUptime() AS session_uptime_elapsed_seconds, 5000 AS session_timeout_ms, false AS is_expired))`;

/** What ClickHouse says where its services have one, and Cloud has not. */
const SUPPORT_IS_DISABLED = 344;

/**
 * Starts what stands in for ClickHouse Cloud: two servers whose tables replicate over Keeper, behind one address. As there,
 *
 * - each statement goes to the next replica, so no session and no temporary table lasts: they are refused;
 * - `CREATE TABLE … ENGINE = MergeTree` makes a table of all replicas, and what changes tables reaches all;
 * - a statement that carries `select_sequential_consistency = 1` finds all that was committed before it. Another one need not;
 * - an insert is committed in Keeper, and waits for no other replica;
 * - the engines of tables are called `Shared…MergeTree`;
 * - `ON CLUSTER default` and `clusterAllReplicas(default, …)` reach all replicas, and fail where one does not answer.
 *
 * Rows that were committed at a server that is down can be read when it is back, where Cloud has them in storage that all
 * share: until then such statements wait, and fail. `await using` ends it, and removes its data.
 */
export async function startCloud({ fateOf = () => undefined }: CloudOptions = {}): Promise<Cloud> {
  await using started = new AsyncDisposableStack();
  const folder = started.use(await makeTempDir());
  const keeper = await startKeeper({ dataDir: folder.path });
  started.defer(() => keeper.kill9());
  const names = ['r1', 'r2'];
  const tcpPorts = await findFreePorts(names.length);
  const relays = await Promise.all(tcpPorts.map((port) => startNativeRelay(port)));
  for (const relay of relays) started.defer(() => relay.stop());
  const cluster = clusterXml(relays.map(({ port }) => port));
  const accounts = await cloudAccounts();
  const servers = await Promise.all(
    names.map(async (name, index) =>
      started.use(
        await ownClickHouse({
          tcpPort: tcpPorts[index] ?? 0,
          accounts,
          replica: { keeperPort: keeper.port, shard: '1', name },
          configFiles: {
            'cluster.xml': cluster,
            'name.xml': `<clickhouse><display_name>${name}</display_name></clickhouse>`,
          },
        }),
      ),
    ),
  );
  const balancer = started.use(await startBalancer(servers, fateOf));
  const kept = started.move();
  return { url: balancer.url, keeper, servers, cut: balancer.cut, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

const SHARED_RIGHTS = new URL('../../deploy/clickhouse/shared.sql', import.meta.url);

/** The accounts of all tests, with the rights of `deploy/clickhouse/shared.sql`. */
async function cloudAccounts(): Promise<AccountOptions> {
  const grants = statementsOf(await readFile(SHARED_RIGHTS, 'utf8'));
  const of = (account: string) =>
    grants.filter((grant) => grant.endsWith(` TO ${account}`)).map((grant) => grant.replace(/ TO \w+$/, ''));
  const added = {
    sluice_migrate: [...TEST_ACCOUNTS.added.sluice_migrate, ...of('sluice_migrate')],
    sluice_writer: of('sluice_writer'),
  };
  return { ...TEST_ACCOUNTS, added };
}

/** All replicas, which log in to each other as the user who asks. */
function clusterXml(ports: readonly number[]): string {
  const replicas = ports.map((port) => `<replica><host>127.0.0.1</host><port>${port}</port></replica>`).join('');
  return `<clickhouse><remote_servers><${CLUSTER} replace="1"><secret>of tests</secret><shard>${replicas}</shard></${CLUSTER}></remote_servers></clickhouse>`;
}

interface Balancer extends AsyncDisposable {
  readonly url: string;
  readonly cut: Cloud['cut'];
}

async function startBalancer(
  servers: readonly LocalClickHouse[],
  fateOf: NonNullable<CloudOptions['fateOf']>,
): Promise<Balancer> {
  const agent = new Agent();
  let [turn, isCut] = [0, false];
  /** What changes tables is done one after the other. */
  let changing: Promise<unknown> = Promise.resolve();

  async function respond(incoming: IncomingMessage): Promise<Answer> {
    const call: Call = {
      path: incoming.url ?? '/',
      headers: incoming.headers,
      body: await buffer(incoming),
      method: incoming.method,
    };
    const parameters = new URL(call.path, 'http://balancer').searchParams;
    const inAddress = parameters.get('query');
    const sql = inAddress ?? queryOf(call);
    const { loses, delayMs = 0 } = fateOf({ sql, queryId: parameters.get('query_id') ?? '' }) ?? {};
    if (loses) incoming.socket.destroy();
    await delay(delayMs);
    if (parameters.has('session_id') || /\bTEMPORARY\b/.test(withoutComments(sql)))
      return refusal('a session does not last: each statement gets to another replica');
    const statement = withoutComments(sql).trimStart();
    if (statement.includes(SESSIONS)) {
      const ofEngine = withSql(call, sql.replaceAll(SESSIONS, SESSIONS_OF_ENGINE));
      return await atOne(ofEngine, statement, parameters);
    }
    if (ON_CLUSTER.test(statement)) return ofHosts(await atEach(withSql(call, sql.replace(ON_CLUSTER, ''))));
    if (/^(CREATE|ALTER|DROP|RENAME|TRUNCATE|GRANT|REVOKE)\b/i.test(statement)) {
      const change = changing.then(() => changeTables(call, sql, statement)).finally(() => known.clear());
      changing = change.catch(() => undefined);
      return await change;
    }
    return await atOne(call, statement, parameters);
  }

  /** What a change of tables does at one replica, the other one gets by Keeper; but each has the settings of tables for itself. */
  async function changeTables(call: Call, sql: string, statement: string): Promise<Answer> {
    const isCarried = /^ALTER TABLE\b/i.test(statement) && !/\bMODIFY SETTING\b/i.test(statement);
    if (isCarried) return await atOne(call, statement, new URL(call.path, 'http://balancer').searchParams);
    const own = ofReplicatedTables(withSql(call, replicated(sql)));
    let answer = await ask(agent, servers[0] as LocalClickHouse, own);
    for (const server of servers.slice(1)) if (answer.status === 200) answer = await ask(agent, server, own);
    return answer;
  }

  async function atEach(call: Call): Promise<Answer> {
    const answers = await Promise.all(servers.map((server) => ask(agent, server, call)));
    return answers.find(({ status }) => status !== 200) ?? (answers[0] as Answer);
  }

  async function atOne(call: Call, statement: string, parameters: URLSearchParams): Promise<Answer> {
    const isSequential = parameters.get('select_sequential_consistency') === '1';
    const own = ofReplicatedTables(call);
    for (let tried = 0; ; tried += 1) {
      turn += 1;
      const server = servers[turn % servers.length] as LocalClickHouse;
      try {
        if (isSequential) await bringLevel(server, statement, parameters.get('database') ?? 'default');
        const answer = await ask(agent, server, own);
        return statement.includes('system.tables') ? asInCloud(answer) : answer;
      } catch (error) {
        // A balancer leaves out a replica that takes no connections.
        const isAway = (error as NodeJS.ErrnoException).code === 'ECONNREFUSED';
        if (!isAway || tried >= servers.length) throw error;
      }
    }
  }

  /** The tables of databases; forgotten when tables change. */
  const known = new Map<string, readonly string[]>();

  /** Has a replica get all that was committed of the tables which a statement names. */
  async function bringLevel(server: LocalClickHouse, statement: string, database: string): Promise<void> {
    const words = new Set(statement.match(/\w+/g));
    const administer = async (sql: string) => {
      const path = `/?${new URLSearchParams({ receive_timeout: String(SYNC_SECONDS_MAX) })}`;
      const { status, body } = await ask(agent, server, { path, method: 'POST', headers: {}, body: Buffer.from(sql) });
      if (status !== 200) throw new Error(String(body));
      return String(body);
    };
    let tables = known.get(database);
    if (!tables) {
      const of = `database = '${database}' AND engine LIKE 'Replicated%'`;
      const found = await administer(`SELECT name FROM system.tables WHERE ${of} FORMAT TSV`);
      tables = found.split('\n').filter((name) => name !== '');
      known.set(database, tables);
    }
    for (const table of tables)
      if (words.has(table)) await administer(`SYSTEM SYNC REPLICA ${database}.${table} LIGHTWEIGHT`);
  }

  const server = createServer((incoming, outgoing) => {
    if (isCut) {
      incoming.socket.destroy();
      return;
    }
    respond(incoming).then(
      ({ status, headers, body }) => {
        if (!outgoing.destroyed) outgoing.writeHead(status, headers).end(body);
      },
      () => outgoing.destroy(),
    );
  });
  const listener = await listening(server);
  return {
    url: listener.url,
    cut() {
      isCut = true;
      server.closeAllConnections();
      return () => {
        isCut = false;
      };
    },
    async [Symbol.asyncDispose]() {
      agent.destroy();
      await listener[Symbol.asyncDispose]();
    },
  };
}

interface Call {
  readonly path: string;
  readonly method: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

async function ask(agent: Agent, { url }: LocalClickHouse, { path, method, headers, body }: Call): Promise<Answer> {
  // Some answers are changed on their way, so none is compressed.
  const { 'content-length': _, 'transfer-encoding': __, 'accept-encoding': ___, ...others } = headers;
  const sent = request(new URL(path, url), { method, agent, headers: { ...others, 'content-length': body.length } });
  sent.end(body);
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const answer = await buffer(response);
  const { 'transfer-encoding': ____, connection: _____, 'keep-alive': ______, ...kept } = response.headers;
  return { status: response.statusCode ?? 502, headers: kept, body: answer };
}

/** What is run at each replica is answered with a row for each, whatever it has found there. */
function ofHosts(answer: Answer): Answer {
  if (answer.status !== 200) return answer;
  const { 'content-length': _, ...others } = answer.headers;
  const rows = ['r1', 'r2'].map((host) => `${JSON.stringify({ host, port: 9000, status: 0, error: '' })}\n`);
  return { ...answer, headers: others, body: Buffer.from(rows.join('')) };
}

/** Engines have other names there. */
function asInCloud({ headers, body, ...answer }: Answer): Answer {
  const { 'content-length': _, ...others } = headers;
  const renamed = body.toString('latin1').replaceAll(/\bReplicated(?=\w*MergeTree\b)/g, 'Shared');
  return { ...answer, headers: others, body: Buffer.from(renamed, 'latin1') };
}

function refusal(reason: string): Answer {
  const body = Buffer.from(`Code: ${SUPPORT_IS_DISABLED}. DB::Exception: ${reason}. (SUPPORT_IS_DISABLED)\n`);
  return { status: 501, headers: { 'x-clickhouse-exception-code': String(SUPPORT_IS_DISABLED) }, body };
}

/** Returns the statement of a request whose address has none. */
function queryOf({ headers, body }: Call): string {
  const isForm = headers['content-type']?.startsWith('multipart/form-data') ?? false;
  if (!isForm) return String(body);
  const [, query = ''] = /name="query"\r\n(?:.+\r\n)*\r\n([\s\S]*?)\r\n--/.exec(body.toString('latin1')) ?? [];
  return Buffer.from(query, 'latin1').toString();
}

/** Returns a call with another statement, which has no data. */
function withSql(call: Call, sql: string): Call {
  const inBody = changed(call, (parameters) => parameters.delete('query'));
  return { ...inBody, body: Buffer.from(sql) };
}

function changed(call: Call, change: (parameters: URLSearchParams) => void): Call {
  const url = new URL(call.path, 'http://balancer');
  change(url.searchParams);
  return { ...call, path: `${url.pathname}${url.search}` };
}

/** Settings of Cloud's engine mean something else with that of the replicas: there, a change waits for all. */
function ofReplicatedTables(call: Call): Call {
  return changed(call, (parameters) => {
    parameters.delete('select_sequential_consistency');
    for (const name of ['alter_sync', 'mutations_sync']) if (parameters.has(name)) parameters.set(name, '2');
  });
}

/** Returns a statement whose tables are of all replicas. */
function replicated(sql: string): string {
  return sql.replaceAll(ENGINE, (_, before: string, engine: string, own = '') => {
    return `${before}Replicated${engine}(${[PATH_AND_NAME, ...(own ? [own] : [])].join(', ')})`;
  });
}

function withoutComments(sql: string): string {
  return sql.replaceAll(/--.*$/gm, '');
}
