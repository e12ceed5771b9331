import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { type EngineProcess, startEngineProcess } from './engine-process.ts';
import { cacheDir, ensureMavenLibs, type MavenLibs } from './maven-libs.ts';
import { findFreePorts, requireFreePort } from './ports.ts';
import { guardCommand } from './process-guard.ts';

const LIBS: MavenLibs = {
  title: 'ZooKeeper 3.9.3',
  size: '18 MB',
  pomFile: join(import.meta.dirname, '..', 'zookeeper', 'pom.xml'),
  installedDir: join(cacheDir, 'zookeeper-3.9.3'),
};
/** The longest session is twenty ticks. */
const TICK_MS = 500;
const STOP_TIMEOUT_MS = 10_000;
/** How long one probe waits for an answer, in milliseconds. */
const PROBE_MS = 2_000;

export interface LocalKeeperOptions {
  /** Created if it is missing; it stays when Keeper stops. */
  readonly dataDir: string;
  readonly onProgress?: (line: string) => void;
}

/** What replicated tables of ClickHouse agree by. */
export interface LocalKeeper {
  /** On 127.0.0.1. */
  readonly port: number;
  /** SIGTERM. */
  stop(): Promise<void>;
  /** SIGKILL. */
  kill9(): Promise<void>;
  /** Starts it again with the same port and data. */
  restart(): Promise<void>;
}

/**
 * Starts ZooKeeper on 127.0.0.1 from its own jars, whose protocol ClickHouse Keeper speaks. It ends with this process.
 *
 * @throws LocalStackError MAVEN_MISSING, MAVEN_FAILED, PORT_TAKEN, ENGINE_EXITED or ENGINE_NOT_READY
 */
export async function startKeeper(options: LocalKeeperOptions): Promise<LocalKeeper> {
  const libs = await ensureMavenLibs(LIBS, options.onProgress);
  const dataDir = resolve(options.dataDir);
  const [port = 0] = await findFreePorts(1);
  await mkdir(dataDir, { recursive: true });
  const configFile = join(dataDir, 'zoo.cfg');
  const settings = {
    ...{ tickTime: TICK_MS, dataDir: join(dataDir, 'data'), clientPort: port, clientPortAddress: '127.0.0.1' },
    ...{ 'admin.enableServer': false, '4lw.commands.whitelist': 'ruok' },
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`);
  await writeFile(configFile, lines.join(''));
  const start = async (): Promise<EngineProcess> => {
    await requireFreePort(port, 'ZooKeeper');
    const java = ['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC', '-Xmx128m', '-XX:+ExitOnOutOfMemoryError'];
    const program = ['-cp', join(libs, '*'), 'org.apache.zookeeper.server.quorum.QuorumPeerMain', configFile];
    return await startEngineProcess({
      name: 'ZooKeeper',
      ...guardCommand('java', [...java, ...program]),
      cwd: dataDir,
      logFile: join(dataDir, 'keeper.log'),
      probe: () => probe(port),
      stopTimeoutMs: STOP_TIMEOUT_MS,
    });
  };
  let current: EngineProcess | undefined = await start();
  const end = async (how: 'stop' | 'kill9'): Promise<void> => {
    await current?.[how]();
    current = undefined;
  };
  return {
    port,
    stop: () => end('stop'),
    kill9: () => end('kill9'),
    restart: async () => {
      await end('stop');
      current = await start();
    },
  };
}

async function probe(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1');
  // One that is asked as it starts may never answer, and is asked again.
  socket.setTimeout(PROBE_MS, () => socket.destroy(new Error('ZooKeeper does not answer')));
  await once(socket, 'connect');
  socket.end('ruok');
  const answer = await text(socket);
  if (answer !== 'imok') throw new Error(`ZooKeeper answered "${answer}"`);
}
