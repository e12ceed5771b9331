import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { createLogger } from '@sluice/shared/base/log';
import { type ClickHouseClient, createClickHouse } from '@sluice/shared/clickhouse/client';
import { migrate } from '@sluice/shared/clickhouse/migrate';
import { Ownership } from '@sluice/storage/clickhouse/ownership';
import type { RowBatch } from '@sluice/storage/protocol/row-batch';
import { StagedStore } from '../../services/writer/src/batch/staged-batch.ts';
import { VoidRun } from '../report/benchmark.ts';

/** Longer than any statement takes, in milliseconds. */
export const TIMEOUT_MS = 600_000;

const EPOCH = { incarnation: 1, generation: 1, server: '' };

/** ClickHouse responds when the rows are stored. */
export const PLAIN_SETTINGS = { async_insert: 0, wait_end_of_query: 1 } as const;

/** A database with the newest schema, and the writer's own code that stores in it. */
export class BenchDatabase implements AsyncDisposable {
  readonly client: ClickHouseClient;
  readonly #store: StagedStore;

  static async create(url: string, name: string): Promise<BenchDatabase> {
    await migrate(configOf(url, name), createLogger('bench', 'warn'));
    const client = createClient(url, name);
    const ownership = new Ownership({ client, groupId: name, writerId: randomUUID(), isMember: async () => false });
    await ownership.begin({ generation: 1, memberId: 'bench', leaderId: 'bench' }, '');
    const store = new StagedStore({ client, ownership, groupId: name, statementTimeoutMs: TIMEOUT_MS });
    return new BenchDatabase(client, store);
  }

  private constructor(client: ClickHouseClient, store: StagedStore) {
    this.client = client;
    this.#store = store;
  }

  /** Stores a batch as the writer does. */
  async store(batch: RowBatch): Promise<void> {
    await this.#store.open(batch, EPOCH, () => undefined).store();
  }

  /** Inserts the same bytes into the table directly. */
  async insert(batch: RowBatch, settings: Readonly<Record<string, number>> = {}): Promise<void> {
    const { stream } = await this.client.exec({
      query: 'INSERT INTO events FORMAT JSONEachRow',
      values: Readable.from(
        batch.events.map(({ value }) => value),
        { objectMode: false },
      ),
      clickhouse_settings: { ...PLAIN_SETTINGS, ...settings },
    });
    for await (const _ of stream);
  }

  /** Reads rows as objects. */
  async read<Row>(query: string, query_params: Record<string, unknown> = {}): Promise<Row[]> {
    return await (await this.client.query({ query, query_params, format: 'JSONEachRow' })).json<Row>();
  }

  /** Merges each month into one part, as ClickHouse does with months that get no events any more. */
  async mergeMonths(): Promise<void> {
    for (const id of await this.partitions()) {
      const query = 'OPTIMIZE TABLE events PARTITION ID {id:String} FINAL';
      await this.client.command({ query, query_params: { id } });
    }
  }

  /** Returns the ids of the partitions of a table. */
  async partitions(table = 'events'): Promise<string[]> {
    const rows = await this.read<{ id: string }>(
      `SELECT DISTINCT partition_id AS id FROM system.parts
       WHERE database = currentDatabase() AND table = {table:String} AND active`,
      { table },
    );
    return rows.map(({ id }) => id);
  }

  /** @throws {VoidRun} unless this many events are stored, each once */
  async expectExactly(events: number): Promise<void> {
    const [stored] = await this.read<{ rows: number; distinct: number }>(
      'SELECT count() AS rows, uniqExact(workspace_id, timestamp, uuid) AS distinct FROM events',
    );
    if (stored?.rows !== events || stored.distinct !== events) {
      throw new VoidRun(`${events} events were sent, ${stored?.rows} are stored, ${stored?.distinct} of them distinct`);
    }
    console.error(`All ${events.toLocaleString('en')} events are stored exactly once.`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client.close();
  }
}

export function createClient(url: string, database: string): ClickHouseClient {
  const options = { application: 'bench', requestTimeoutMs: TIMEOUT_MS, connectionsMax: 4 };
  return createClickHouse(configOf(url, database), options);
}

function configOf(url: string, database: string) {
  return { CLICKHOUSE_URL: url, CLICKHOUSE_DATABASE: database, CLICKHOUSE_USER: 'default', CLICKHOUSE_PASSWORD: '' };
}
