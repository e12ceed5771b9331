import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type LocalClickHouse, type LocalClickHouseOptions, startClickHouse } from '@sluice/local-stack/clickhouse';
import { type LocalKafka, startKafka } from '@sluice/local-stack/kafka';
import { sleep } from '@sluice/shared/base/retry';
import { TEST_ACCOUNTS } from '@sluice/shared/clickhouse/testing/test-accounts';

/** How long no merge must have run, in milliseconds. */
const SETTLE_MS = 1_000;
const SETTLE_MS_MAX = 30_000;

type EngineOptions = Pick<LocalClickHouseOptions, 'kafkaSessionTimeoutMs'>;

/** A Kafka and a ClickHouse without data, each a process. */
export class Engines implements AsyncDisposable {
  readonly kafka: LocalKafka;
  readonly clickhouse: LocalClickHouse;
  readonly #running: AsyncDisposableStack;

  static async start(options: EngineOptions = {}): Promise<Engines> {
    await using started = new AsyncDisposableStack();
    const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-'));
    started.defer(() => rm(folder, { recursive: true, force: true }));
    const kafka = await startKafka({ dataDir: join(folder, 'kafka'), onProgress: (line) => console.error(line) });
    started.defer(() => kafka.kill9());
    const clickhouse = await startClickHouse({
      dataDir: join(folder, 'clickhouse'),
      accounts: TEST_ACCOUNTS,
      ...options,
    });
    started.defer(() => clickhouse.kill9());
    return new Engines(kafka, clickhouse, started.move());
  }

  private constructor(kafka: LocalKafka, clickhouse: LocalClickHouse, running: AsyncDisposableStack) {
    this.kafka = kafka;
    this.clickhouse = clickhouse;
    this.#running = running;
  }

  /** Their process ids. */
  pidOf(name: 'Kafka' | 'ClickHouse'): number {
    return (name === 'Kafka' ? this.kafka.pids[0] : this.clickhouse.pid) ?? -1;
  }

  /** Runs a statement in ClickHouse as its administrator, and returns the response. */
  async query(sql: string): Promise<string> {
    const response = await fetch(this.clickhouse.url, { method: 'POST', body: sql });
    const text = await response.text();
    if (!response.ok) throw new Error(text);
    return text;
  }

  /** Waits until merges are done, and no other one has begun for a second; half a minute at most. */
  async mergesSettled(): Promise<void> {
    const endAt = Date.now() + SETTLE_MS_MAX;
    for (let idleSince = Date.now(); Date.now() < Math.min(idleSince + SETTLE_MS, endAt); ) {
      if ((await this.query('SELECT count() FROM system.merges')) !== '0\n') idleSince = Date.now();
      await sleep(100);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#running.disposeAsync();
  }
}
