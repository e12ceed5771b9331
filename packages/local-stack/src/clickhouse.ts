import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { get, type IncomingMessage, request } from 'node:http';
import { dirname, join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import type { AccountOptions } from './clickhouse-accounts.ts';
import {
  INTERSERVER_HOST,
  type ReplicaConfig,
  replicaConfigXml,
  serverConfigXml,
  usersXml,
} from './clickhouse-config.ts';
import { type EngineProcess, type ExitStatus, startEngineProcess } from './engine-process.ts';
import { LocalStackError } from './errors.ts';
import { findFreePorts, requireFreePort } from './ports.ts';

export interface LocalClickHouseOptions {
  /** Created if it is missing; it stays when the server stops. */
  readonly dataDir: string;
  /** Default: a free port. */
  readonly httpPort?: number;
  /** For the native protocol. Default: a free port. */
  readonly tcpPort?: number;
  /** The password of the administrator, who is `sluice` with one, and `default` without. */
  readonly password?: string;
  /** The accounts of the services. Default none. */
  readonly accounts?: AccountOptions | undefined;
  /** Settings of every account's profile. Default none. */
  readonly profile?: Readonly<Record<string, string>>;
  /** The accounts and the views for statements of clients. Default none. */
  readonly sql?: SqlOptions | undefined;
  /** Files of `users.d`, by name: more accounts, as XML. Default none. */
  readonly usersFiles?: Readonly<Record<string, string>>;
  /** Files of `config.d`, by name: more of the server's configuration, as XML. Default none. */
  readonly configFiles?: Readonly<Record<string, string>>;
  /** Makes it a replica. Its listener for other replicas has the HTTP port on another address. Default none. */
  readonly replica?: ReplicaConfig | undefined;
  /** The memory that the server may use. Default 4 GiB. */
  readonly memoryBytesMax?: number;
  /** Whether it keeps `system.query_log`. Default false. */
  readonly queryLog?: boolean;
  /** After how long a consumer of a table with the engine `Kafka` leaves its group when it was killed. Default: 45,000 ms. */
  readonly kafkaSessionTimeoutMs?: number | undefined;
  /**
   * A command that runs the server's, such as `nsenter`, and is replaced by it. It may hide the data folder from this
   * process, but not the folder of the logs.
   */
  readonly wrap?: readonly string[];
  /** Where `<name>.log` and `<name>.out.log` go. Default: the data folder. */
  readonly logDir?: string;
  /** The folder that `BACKUP` and `RESTORE` may use. Default: `backups` in the data folder. */
  readonly backupDir?: string;
  /** For log files and messages. Default `clickhouse`. */
  readonly name?: string;
  /** As that of an `EngineProcessSpec`. */
  readonly readyTimeoutMs?: number;
  /** Cancels the start. */
  readonly signal?: AbortSignal;
}

export interface LocalClickHouse {
  /** `http://127.0.0.1:<port>` */
  readonly url: string;
  readonly httpPort: number;
  readonly tcpPort: number;
  readonly user: string;
  /** Empty when the server has none. */
  readonly password: string;
  /** undefined while the server is down. */
  readonly pid: number | undefined;
  /** Resolves when the process ends; at once while the server is down. */
  exited(): Promise<ExitStatus>;
  /** SIGTERM. It takes up to 5 s while clients keep connections open. The data stays. */
  stop(): Promise<void>;
  /** SIGKILL. */
  kill9(): Promise<void>;
  /** Starts the server again with the same ports and data, and waits until it answers. */
  restart(): Promise<void>;
}

const START_SQL = 'SYSTEM START LISTEN HTTP;\nSYSTEM START LISTEN TCP;\n';
/** Runs a command without the secrets of this process's environment: the server's function `file` can read its own. */
const CLEAN_ENVIRONMENT = `exec env -i TZ=UTC PATH="$PATH" HOME="\${HOME-}" \${TMPDIR:+TMPDIR="$TMPDIR"} \
  \${LD_LIBRARY_PATH:+LD_LIBRARY_PATH="$LD_LIBRARY_PATH"} "$@"`;
const GIBIBYTE = 1024 ** 3;
const STOP_TIMEOUT_MS = 12_000;

/**
 * Starts a ClickHouse server on 127.0.0.1: the engine of the chDB package in a process of its own, in the time zone UTC.
 * Resolves when it answers queries. It ends with this process, also when this is killed.
 *
 * @throws LocalStackError DATA_FOLDER_IN_USE, PORT_TAKEN, ENGINE_EXITED or ENGINE_NOT_READY
 */
export async function startClickHouse(options: LocalClickHouseOptions): Promise<LocalClickHouse> {
  const [freeHttpPort = 0, freeTcpPort = 0] = await findFreePorts(2);
  const { httpPort = freeHttpPort, tcpPort = freeTcpPort, password = '' } = options;
  const server = {
    options: { ...options, dataDir: resolve(options.dataDir) },
    httpPort,
    tcpPort,
    user: password === '' ? 'default' : 'sluice',
    password,
    url: `http://127.0.0.1:${httpPort}`,
  };
  let current: EngineProcess | undefined = await startServer(server);
  const end = async (how: 'stop' | 'kill9'): Promise<void> => {
    await current?.[how]();
    current = undefined;
  };
  const { url, user } = server;
  return {
    ...{ url, httpPort, tcpPort, user, password },
    get pid() {
      return current?.pid;
    },
    exited: async () => (await current?.exited) ?? { code: null, signal: null },
    stop: () => end('stop'),
    kill9: () => end('kill9'),
    restart: async () => {
      await end('stop');
      current = await startServer(server);
    },
  };
}

interface Server {
  readonly options: LocalClickHouseOptions;
  readonly httpPort: number;
  readonly tcpPort: number;
  readonly user: string;
  readonly password: string;
  readonly url: string;
}

async function startServer(server: Server): Promise<EngineProcess> {
  const {
    dataDir,
    logDir = dataDir,
    backupDir = join(dataDir, 'backups'),
    name = 'clickhouse',
    memoryBytesMax = 4 * GIBIBYTE,
  } = server.options;
  await requireFreePort(server.httpPort, 'ClickHouse');
  await requireFreePort(server.tcpPort, 'ClickHouse');
  await mkdir(dataDir, { recursive: true });
  await mkdir(logDir, { recursive: true });
  const runDirPrefix = join(logDir, `.run-${name}-`);
  const runDir = await mkdtemp(runDirPrefix);
  const usersFile = join(runDir, 'users.xml');
  const { queryLog = false, kafkaSessionTimeoutMs, profile = {}, accounts, sql } = server.options;
  const usersFiles = { ...(sql && { 'sql.xml': await sqlAccountsXml(sql) }), ...server.options.usersFiles };
  const { readyTimeoutMs, wrap = [], replica } = server.options;
  const replicaFiles = replica && { 'replica.xml': replicaConfigXml(replica) };
  const configFiles = { ...replicaFiles, ...server.options.configFiles };
  const logFile = join(logDir, `${name}.log`);
  const config = { ...server, logFile, usersFile, memoryBytesMax, queryLog, kafkaSessionTimeoutMs, backupDir };
  await writeFile(join(runDir, 'config.xml'), serverConfigXml(config), { mode: 0o600 });
  await writeFile(usersFile, await usersXml({ ...server, profile, accounts }), { mode: 0o600 });
  for (const [folder, files] of Object.entries({ 'users.d': usersFiles, 'config.d': configFiles })) {
    await mkdir(join(runDir, folder));
    for (const [file, xml] of Object.entries(files)) await writeFile(join(runDir, folder, file), xml, { mode: 0o600 });
  }
  await writeFile(join(runDir, 'start.sql'), START_SQL);
  const host = join(import.meta.dirname, 'clickhouse-host.ts');
  const nodeArgs = ['--disable-warning=ExperimentalWarning', host, runDir, dataDir, backupDir];
  if (replica) nodeArgs.push(`${INTERSERVER_HOST}:${server.httpPort}`);
  try {
    const engine = await startEngineProcess({
      name: 'ClickHouse',
      command: 'sh',
      args: ['-c', CLEAN_ENVIRONMENT, 'sh', ...wrap, process.execPath, ...nodeArgs],
      cwd: logDir,
      logFile: join(logDir, `${name}.out.log`),
      probe: (signal) => probe(server, signal),
      explain: (log) => explain(log, dataDir),
      readyTimeoutMs,
      signal: server.options.signal,
      stopTimeoutMs: STOP_TIMEOUT_MS,
    });
    await removeStaleRunDirs(runDirPrefix, runDir);
    if (sql) await createSqlViews(server, sql).catch((error) => engine.kill9().then(() => Promise.reject(error)));
    return engine;
  } catch (error) {
    await rm(runDir, { recursive: true, force: true });
    throw error;
  }
}

/** It does not use fetch, whose open connection would delay the stop of the server by 5 s. */
async function probe({ url, user, password }: Server, signal: AbortSignal): Promise<void> {
  const headers = { 'X-ClickHouse-User': user, 'X-ClickHouse-Key': password };
  const request = get(`${url}/?query=SELECT+1`, { headers, signal, agent: false });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const body = await text(response);
  if (response.statusCode !== 200) throw new Error(`HTTP ${response.statusCode}: ${body.slice(0, 500)}`);
}

async function explain(log: string, dataDir: string): Promise<LocalStackError | undefined> {
  if (!log.includes('Another server instance in same directory is already running')) return undefined;
  const status = await readFile(join(dataDir, 'status'), 'utf8').catch(() => '');
  const holder = /PID: (\d+)/.exec(status)?.[1] ?? 'unknown';
  return new LocalStackError(
    'DATA_FOLDER_IN_USE',
    `ClickHouse cannot start: another process (pid ${holder}) uses the data folder ${dataDir}. Stop it, or use another folder.`,
  );
}

/** Removes the run folders of servers that were killed while starting. */
async function removeStaleRunDirs(prefix: string, currentRunDir: string): Promise<void> {
  const folder = dirname(prefix);
  const found = (await readdir(folder)).map((name) => join(folder, name));
  const stale = found.filter((path) => path.startsWith(prefix) && path !== currentRunDir);
  await Promise.all(stale.map((path) => rm(path, { recursive: true, force: true })));
}

const ACCOUNTS = new URL('../../../deploy/clickhouse/sql/accounts.xml', import.meta.url);
const VIEWS = new URL('../../../deploy/clickhouse/sql/views.sql', import.meta.url);

/** The hash of the password in the file, which is to be replaced. */
const PASSWORD_SHA256 = /(?<=<password_sha256_hex>)[0-9a-f]{64}(?=<)/;

/** For statements of clients. */
interface SqlOptions {
  /** The database of the services. That of the views has its name and `_sql`. */
  readonly database: string;
  /** The password of the account `sluice_sql`. */
  readonly password: string;
}

/** Returns `deploy/clickhouse/sql/accounts.xml` for a database, with a password. */
async function sqlAccountsXml({ database, password }: SqlOptions): Promise<string> {
  const xml = await readFile(ACCOUNTS, 'utf8');
  const hash = createHash('sha256').update(password).digest('hex');
  return forDatabase(xml, database).replace(PASSWORD_SHA256, hash);
}

/** Creates the views of `deploy/clickhouse/sql/views.sql`, and replaces those of an older version. */
async function createSqlViews(
  { url, user, password }: { readonly url: string; readonly user: string; readonly password: string },
  { database }: SqlOptions,
): Promise<void> {
  const statements = forDatabase(await readFile(VIEWS, 'utf8'), database).split(/;\n/);
  for (const statement of statements.filter((one) => one.trim() !== '')) {
    const headers = { 'X-ClickHouse-User': user, 'X-ClickHouse-Key': password };
    // Not fetch, whose open connection would delay the stop of the server by 5 s.
    const sent = request(url, { method: 'POST', headers, agent: false }).end(statement);
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    const body = await text(response);
    if (response.statusCode !== 200) throw new Error(`a view was not created: ${body.slice(0, 500)}`);
  }
}

/** The files are for the databases `sluice` and `sluice_sql`; their accounts keep their names. */
function forDatabase(content: string, database: string): string {
  return content
    .replaceAll(/\bsluice(?=(_sql)?\.[a-z*])/g, database)
    .replaceAll(/(?<=EXISTS )sluice(?=_sql;)/g, database)
    .replaceAll(/(?<=<\/?)sluice(?=>)/g, database);
}
