import { execFile } from 'node:child_process';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startEngineProcess } from '@sluice/local-stack/engine-process';
import { installOnce } from '@sluice/local-stack/install-packages';
import { cacheDir } from '@sluice/local-stack/maven-libs';
import { findFreePorts } from '@sluice/local-stack/ports';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { findOnPath } from './find-on-path.ts';
import { kafkaClient } from './kafka-client.ts';
import { TESTED_KAFKAS } from './tested-engines.ts';

const SOURCES = join(import.meta.dirname, 'kfake');
const FILES = ['go.mod', 'go.sum', 'main.go', 'edits.go'];
const BUILT = join(cacheDir, 'kfake');

const REMEDY = 'Go 1.26 or newer is needed on the PATH, or where its installer puts it.';

/** What brokers may lack. `append-time`: kfake as it is, which knows no LogAppendTime. `edits.go` says what each is. */
export type KafkaLack =
  | 'append-time'
  | 'acknowledged-time'
  | 'record-time'
  | 'leader-epoch'
  | 'commit-metadata'
  | 'offsets-by-time';

export interface KfakeOptions {
  /** Default 1. */
  readonly brokers?: number;
  readonly lacks?: readonly KafkaLack[];
  /** The release of Kafka whose requests the brokers know, such as `2.1`. Default: the newest ones. */
  readonly version?: string;
}

/** A cluster of franz-go's `kfake` in memory: another implementation of Kafka's protocol. */
export interface Kfake extends AsyncDisposable {
  /** `host:port` of every broker. */
  readonly brokers: readonly string[];
  /** Closes the connections to the first broker. */
  cut(): void;
}

/** Builds kfake, where that is not built yet, and starts a cluster on 127.0.0.1. @throws {Error} where there is no Go */
export async function startKfake({ brokers = 1, lacks = [], version }: KfakeOptions = {}): Promise<Kfake> {
  await build();
  await using started = new AsyncDisposableStack();
  const folder = started.use(await makeTempDir()).path;
  const ports = await findFreePorts(brokers);
  const addresses = ports.map((port) => `127.0.0.1:${port}`);
  const kfake = await startEngineProcess({
    name: TESTED_KAFKAS.kfake.name,
    command: join(BUILT, 'kfake'),
    args: [
      `-ports=${ports.join()}`,
      `-lacks=${lacks.join()}`,
      ...(version === undefined ? [] : [`-version=${version}`]),
    ],
    cwd: folder,
    logFile: join(folder, 'kfake.log'),
    probe: async () => void (await withAdmin(kafkaClient(addresses), (admin) => admin.describeCluster())),
    stopTimeoutMs: 10_000,
  });
  started.defer(() => kfake.kill9());
  const running = started.move();
  return {
    brokers: addresses,
    cut: () => void process.kill(kfake.pid, 'SIGUSR1'),
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

async function build(): Promise<void> {
  const go = (await findOnPath('go')) ?? '/usr/local/go/bin/go';
  const files = FILES.map((name) => join(SOURCES, name));
  await installOnce(BUILT, files, async () => {
    for (const name of FILES) await copyFile(join(SOURCES, name), join(BUILT, name));
    await promisify(execFile)(go, ['build', '-buildvcs=false', '-o', 'kfake', '.'], { cwd: BUILT }).catch((cause) => {
      throw new Error(`${REMEDY} kfake could not be built.`, { cause });
    });
  });
}
