import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startClickHouse } from './clickhouse.ts';
import type { AccountOptions } from './clickhouse-accounts.ts';
import type { AddedUsers } from './clickhouse-config.ts';
import { hasContainerRuntime, startContainers } from './containers.ts';
import { startKafka } from './kafka.ts';

/** Official images in containers, or the engines of this package. */
export type TestStackKind = 'containers' | 'local';

export interface TestStackOptions {
  /** Default 1. */
  readonly kafkaBrokers?: 1 | 3;
  /** Default: containers where a runtime answers and can start them, else local. */
  readonly kind?: TestStackKind | undefined;
  /** Settings of all accounts of ClickHouse. Default none. */
  readonly clickhouseProfile?: Readonly<Record<string, string>>;
  /** The accounts of the services. Default none. */
  readonly clickhouseAccounts?: AccountOptions;
  readonly onProgress?: (line: string) => void;
}

/** Real engines without data, on free ports. */
export interface TestStack {
  readonly kind: TestStackKind;
  /** `host:port` of every broker. */
  readonly kafkaBrokers: string[];
  /** The administrator is `default` without a password. */
  readonly clickhouseUrl: string;
  /** Kills the engines and removes their data. */
  stop(): Promise<void>;
}

/**
 * Reads the value of `SLUICE_TEST_STACK`; `undefined` when it is unset or empty.
 *
 * @throws Error on any other value than `containers` or `local`.
 */
export function parseTestStackKind(value: string | undefined): TestStackKind | undefined {
  if (value === undefined || value === '') return undefined;
  if (value === 'containers' || value === 'local') return value;
  throw new Error(`SLUICE_TEST_STACK is "${value}"; use "containers" or "local"`);
}

/**
 * Starts Kafka and ClickHouse for tests and waits until both answer. Without a `kind`, engines that do not start as
 * containers are started on this machine.
 */
export async function startTestStack(options: TestStackOptions = {}): Promise<TestStack> {
  const { kind, onProgress = () => {}, kafkaBrokers = 1 } = options;
  const users = { profile: options.clickhouseProfile ?? {}, accounts: options.clickhouseAccounts };
  if (kind === 'containers' || (kind === undefined && (await hasContainerRuntime()))) {
    try {
      const containers = await startContainers(kafkaBrokers, users);
      return { ...containers, kind: 'containers', kafkaBrokers: [...containers.kafkaBrokers] };
    } catch (error) {
      const reason = (error as Error).message.trim();
      if (kind === 'containers') {
        throw new Error(
          `SLUICE_TEST_STACK is "containers", and the containers do not start: ${reason}. Set it to "local", or unset it, to use the engines of this package.`,
          { cause: error },
        );
      }
      onProgress(
        `A container runtime answers, but the containers do not start (${reason}). Using local engines; SLUICE_TEST_STACK=local skips this attempt.`,
      );
    }
  }
  return startLocalStack(kafkaBrokers, users, onProgress);
}

async function startLocalStack(
  brokers: 1 | 3,
  users: AddedUsers,
  onProgress: (line: string) => void,
): Promise<TestStack> {
  await using started = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), 'sluice-stack-'));
  started.defer(() => rm(dataDir, { recursive: true, force: true }));
  // The data is removed anyway, so the engines are killed.
  const kafka = startKafka({ dataDir: join(dataDir, 'kafka'), brokers, onProgress }).then((running) => {
    started.defer(async () => {
      await Promise.all(running.pids.map((_, index) => running.kill9(index)));
    });
    return running;
  });
  const clickhouse = startClickHouse({ dataDir: join(dataDir, 'clickhouse'), ...users }).then((running) => {
    started.defer(() => running.kill9());
    return running;
  });
  await Promise.allSettled([kafka, clickhouse]);
  const { brokers: kafkaBrokers } = await kafka;
  const { url: clickhouseUrl } = await clickhouse;
  const running = started.move();
  return { kind: 'local', kafkaBrokers: [...kafkaBrokers], clickhouseUrl, stop: () => running.disposeAsync() };
}
