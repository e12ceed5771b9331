import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { commandLineOf } from './command-line.ts';
import { type EngineProcess, type ExitStatus, startEngineProcess } from './engine-process.ts';
import { LocalStackError } from './errors.ts';
import { BOOTSTRAP, ensureKafkaArchive, type KafkaArchive } from './kafka-archive.ts';
import { ensureKafkaLibs, type KafkaVersion } from './kafka-libs.ts';
import { probeKafka } from './kafka-probe.ts';
import {
  type BrokerAddress,
  type BrokerSettings,
  brokerProperties,
  formatProperties,
  type KafkaListeners,
} from './kafka-properties.ts';
import { findFreePorts, requireFreePort } from './ports.ts';
import { guardCommand } from './process-guard.ts';

export interface LocalKafkaOptions {
  /** Created if it is missing; it stays when Kafka stops. The first start fixes the size of the cluster. */
  readonly dataDir: string;
  /** Default: the newest. */
  readonly version?: KafkaVersion;
  /** Default 1. */
  readonly brokers?: 1 | 3;
  /** One port for clients per broker. Default: free ports. */
  readonly ports?: readonly number[];
  /** The ports that brokers tell clients, for proxies that forward to `ports`. Default: `ports`. */
  readonly advertisedPorts?: readonly number[];
  /** Added to the server.properties of every broker; they override the defaults. */
  readonly settings?: BrokerSettings;
  /** More listeners for clients, on free ports. Default none: clients connect without encryption and login. */
  readonly listeners?: KafkaListeners;
  /** Users whose logins by SCRAM the first start creates. Default none. */
  readonly scramUsers?: readonly ScramUser[];
  /** Where `broker-<n>.log` files go. Default: the data folder. */
  readonly logDir?: string;
  /** Java heap of each broker. Default 512 for one broker, 256 for each of three. */
  readonly heapMebibytesMax?: number;
  /** For each broker, as that of an `EngineProcessSpec`. */
  readonly readyTimeoutMs?: number;
  /** Cancels the start. */
  readonly signal?: AbortSignal;
  readonly onProgress?: (line: string) => void;
}

export interface ScramUser {
  readonly mechanism: 'SCRAM-SHA-256' | 'SCRAM-SHA-512';
  readonly name: string;
  readonly password: string;
}

/** A running cluster. Broker numbers count from 0. */
export interface LocalKafka {
  /** `host:port` of every broker, also of one that is down. */
  readonly brokers: readonly string[];
  /** `host:port` of every broker at each of the `listeners`. */
  readonly listeners: Readonly<Record<string, readonly string[]>>;
  /** Process ids; undefined for a broker that is down. */
  readonly pids: readonly (number | undefined)[];
  /** Resolves when the broker's process ends; at once while the broker is down. */
  exited(broker?: number): Promise<ExitStatus>;
  /** SIGTERM to one broker. */
  stopBroker(broker?: number): Promise<void>;
  /** SIGKILL to one broker. */
  kill9(broker?: number): Promise<void>;
  /** Starts a broker that is down with the same port and data, and waits until it answers. */
  restart(broker?: number): Promise<void>;
  /** SIGTERM to all. The data stays. */
  stop(): Promise<void>;
}

interface Broker {
  readonly address: BrokerAddress;
  readonly dir: string;
  process?: EngineProcess | undefined;
}

const STOP_TIMEOUT_MS = 15_000;
/** How long a broker may take to stop that writes an archive when it ends, in milliseconds. */
const ARCHIVE_TIMEOUT_MS = 120_000;

/**
 * Starts Apache Kafka on 127.0.0.1 from its own jars, in KRaft mode: each node is broker and controller, and three
 * brokers replicate to all. Resolves when every broker answers and knows the others. The brokers end with this process,
 * also when this is killed.
 *
 * @throws LocalStackError MAVEN_MISSING, MAVEN_FAILED, DATA_FOLDER_IN_USE, PORT_TAKEN, ENGINE_EXITED or ENGINE_NOT_READY
 */
export async function startKafka(options: LocalKafkaOptions): Promise<LocalKafka> {
  const libs = await ensureKafkaLibs(options.onProgress, options.signal, options.version);
  const archive = await ensureKafkaArchive(libs, async (dataDir, javaOption) => {
    await mkdir(dataDir, { recursive: true });
    const { signal } = options;
    const kafka = await startCluster({ dataDir, ...(signal && { signal }) }, { libs, javaOption });
    await kafka.stop();
    return join(dataDir, 'broker-1', 'log');
  });
  return await startCluster(options, { libs, archive });
}

/** What brokers are started from. */
interface KafkaProgram {
  readonly libs: string;
  readonly archive?: KafkaArchive | undefined;
  /** One more option of Java. */
  readonly javaOption?: string | undefined;
}

async function startCluster(options: LocalKafkaOptions, program: KafkaProgram): Promise<LocalKafka> {
  const dataDir = resolve(options.dataDir);
  await mkdir(dataDir, { recursive: true });
  const brokers = await layOutBrokers(options, dataDir);
  const cluster = brokers.map(({ address }) => address);
  const clusterId = await readOrCreateClusterId(dataDir);
  const start = (broker: Broker) => startBroker(broker, cluster, { ...options, ...program, clusterId, dataDir });

  const at = (index: number): Broker => {
    const broker = brokers[index];
    if (!broker) throw new RangeError(`there is no broker ${index}`);
    return broker;
  };
  const end = async (broker: Broker, how: 'stop' | 'kill9'): Promise<void> => {
    await broker.process?.[how]();
    broker.process = undefined;
  };
  const endAll = async (how: 'stop' | 'kill9'): Promise<void> => {
    await Promise.all(brokers.map((broker) => end(broker, how)));
  };

  const started = await Promise.allSettled(brokers.map(start));
  const failed = started.find((outcome) => outcome.status === 'rejected');
  if (failed) {
    await endAll('kill9');
    throw failed.reason;
  }

  return {
    brokers: cluster.map(({ port }) => `127.0.0.1:${port}`),
    listeners: Object.fromEntries(
      Object.keys(options.listeners ?? {}).map((name) => [
        name,
        cluster.map(({ listenerPorts }) => `127.0.0.1:${listenerPorts?.[name]}`),
      ]),
    ),
    get pids() {
      return brokers.map((broker) => broker.process?.pid);
    },
    exited: async (index = 0) => (await at(index).process?.exited) ?? { code: null, signal: null },
    stopBroker: (index = 0) => end(at(index), 'stop'),
    kill9: (index = 0) => end(at(index), 'kill9'),
    restart: async (index = 0) => {
      await end(at(index), 'stop');
      await start(at(index));
    },
    stop: () => endAll('stop'),
  };
}

async function layOutBrokers(options: LocalKafkaOptions, dataDir: string): Promise<Broker[]> {
  const count = options.brokers ?? 1;
  const { ports = await findFreePorts(count) } = options;
  const { advertisedPorts = ports } = options;
  for (const { length } of [ports, advertisedPorts]) {
    if (length !== count) throw new RangeError(`${count} brokers need ${count} ports, not ${length}`);
  }
  const controllerPorts = await findFreePorts(count);
  const names = Object.keys(options.listeners ?? {});
  const listenerPorts = await findFreePorts(count * names.length);
  return ports.map((port, index) => ({
    address: {
      nodeId: index + 1,
      port,
      controllerPort: controllerPorts[index] ?? 0,
      advertisedPort: advertisedPorts[index] ?? 0,
      listenerPorts: Object.fromEntries(names.map((name, at) => [name, listenerPorts[at * count + index] ?? 0])),
    },
    dir: join(dataDir, `broker-${index + 1}`),
  }));
}

/** An id as Kafka writes it: 22 characters of base64url, the first not a dash, which its tools would take for an option. */
function newId(): string {
  let id = '-';
  while (id.startsWith('-')) id = randomBytes(16).toString('base64url');
  return id;
}

/** The cluster's id. */
async function readOrCreateClusterId(dataDir: string): Promise<string> {
  const file = join(dataDir, 'cluster-id');
  const known = await readFile(file, 'utf8').catch(() => '');
  if (known) return known.trim();
  const id = newId();
  await writeFile(file, `${id}\n`);
  return id;
}

interface StartContext extends LocalKafkaOptions, KafkaProgram {
  readonly clusterId: string;
  readonly dataDir: string;
}

async function startBroker(broker: Broker, cluster: readonly BrokerAddress[], context: StartContext): Promise<void> {
  const { address, dir } = broker;
  const name = `Kafka broker ${address.nodeId}`;
  const logDir = join(dir, 'log');
  const propertiesFile = join(dir, 'server.properties');
  const pidFile = join(dir, 'pid');
  const heap = context.heapMebibytesMax ?? (cluster.length === 1 ? 512 : 256);
  await requireFreePort(address.port, name);
  await requireUnusedDir(dir, pidFile, name);
  await mkdir(dir, { recursive: true });
  if (!existsSync(logDir)) await formatLogDir(broker, cluster, context, logDir);
  await writeFile(propertiesFile, brokerProperties(address, cluster, logDir, context.settings, context.listeners), {
    mode: 0o600,
  });

  const java = [...javaOptions(context), `-Xmx${heap}m`, '-XX:+ExitOnOutOfMemoryError'];
  const log = [
    '-Dorg.slf4j.simpleLogger.showDateTime=true',
    '-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS',
  ];
  broker.process = await startEngineProcess({
    name,
    ...guardCommand('java', [
      ...java,
      ...log,
      dirMark(dir),
      '-cp',
      join(context.libs, '*'),
      'kafka.Kafka',
      propertiesFile,
    ]),
    cwd: dir,
    logFile: join(context.logDir ?? context.dataDir, `broker-${address.nodeId}.log`),
    probe: () => probeKafka(`127.0.0.1:${address.port}`, cluster.length),
    onSpawn: (pid) => writeFile(pidFile, `${pid}\n`),
    readyTimeoutMs: context.readyTimeoutMs,
    signal: context.signal,
    stopTimeoutMs: context.javaOption ? ARCHIVE_TIMEOUT_MS : STOP_TIMEOUT_MS,
  });
}

/** For little CPU time at the start. Java starts without an archive that does not fit. */
function javaOptions({ archive, javaOption }: KafkaProgram): string[] {
  const shared = archive ? [`-XX:SharedArchiveFile=${archive.classesFile}`] : [];
  return ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', ...shared, ...(javaOption ? [javaOption] : [])];
}

/** An argument by which a broker's command line is recognised, in ASCII as ps needs it. */
function dirMark(dir: string): string {
  return `-Dsluice.dir=${encodeURIComponent(dir)}`;
}

/**
 * Kafka's own lock is too late: by then a second process has opened the metadata log, and the first can no longer stop
 * in an orderly way.
 */
async function requireUnusedDir(dir: string, pidFile: string, name: string): Promise<void> {
  const pid = Number(await readFile(pidFile, 'utf8').catch(() => ''));
  if (pid === 0 || !(await commandLineOf(pid))?.includes(dirMark(dir))) return;
  throw new LocalStackError(
    'DATA_FOLDER_IN_USE',
    `${name} cannot start: another process (pid ${pid}) uses the data folder ${dir}. Stop it, or use another folder.`,
  );
}

/** Formats a temporary folder and renames it, so that a log folder that exists is a formatted one. */
async function formatLogDir(
  { address, dir }: Broker,
  cluster: readonly BrokerAddress[],
  context: StartContext,
  logDir: string,
): Promise<void> {
  const freshDir = `${logDir}.new`;
  await rm(freshDir, { recursive: true, force: true });
  if (context.archive && !context.scramUsers?.length) {
    await mkdir(freshDir);
    await copyFile(context.archive.bootstrapFile, join(freshDir, BOOTSTRAP));
    const ids = { version: 1, 'cluster.id': context.clusterId, 'node.id': address.nodeId, 'directory.id': newId() };
    await writeFile(join(freshDir, 'meta.properties'), formatProperties(ids));
  } else {
    await runFormatTool({ address, dir }, cluster, context, freshDir);
  }
  await rename(freshDir, logDir);
}

async function runFormatTool(
  { address, dir }: Broker,
  cluster: readonly BrokerAddress[],
  context: StartContext,
  logDir: string,
): Promise<void> {
  const propertiesFile = join(dir, 'format.properties');
  await writeFile(propertiesFile, brokerProperties(address, cluster, logDir, context.settings));
  const scram = (context.scramUsers ?? []).flatMap(({ mechanism, name, password }) => [
    '--add-scram',
    `${mechanism}=[name=${name},password=${password}]`,
  ]);
  const tool = ['-cp', join(context.libs, '*'), 'kafka.tools.StorageTool', 'format', '-t', context.clusterId];
  await promisify(execFile)('java', [
    ...javaOptions({ ...context, javaOption: undefined }),
    ...tool,
    '-c',
    propertiesFile,
    ...scram,
  ]);
  await rm(propertiesFile);
}
