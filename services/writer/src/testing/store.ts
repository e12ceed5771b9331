import { randomUUID } from 'node:crypto';
import { type ClickHouseClient, createClickHouse } from '@sluice/shared/clickhouse/client';
import { ADMINISTRATOR, WRITER_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { type TestDatabase, takeDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import type { ClickHouseConfig } from '@sluice/shared/config';
import type { ChangeRow, EventRow } from '@sluice/shared/rows';
import type { StagedBatch, StoredRows } from '../batch/staged-batch.ts';
import { StagedStore } from '../batch/staged-batch.ts';
import { Ownership } from '../clickhouse/ownership.ts';
import type { DeadLetter } from '../protocol/dead-letter.ts';
import type { Epoch } from '../protocol/epoch.ts';
import type { RowBatch, RowMessage } from '../protocol/row-batch.ts';

type Account = Pick<ClickHouseConfig, 'CLICKHOUSE_USER' | 'CLICKHOUSE_PASSWORD'>;

/** The result of storing a batch. */
export interface Stored {
  /** How many rows were loaded. */
  readonly rows: number;
  /** How many of them were left out, because their user was deleted after they were accepted. */
  readonly userDeleted: number;
  /** The rows that cannot be stored. */
  readonly deadLetters: readonly DeadLetter[];
}

export interface TestBatch {
  /** Stores the rows. After a failure, first ends what has begun, as the batch loop does. @throws ClickHouse's errors */
  store(): Promise<StoredRows>;
}

export interface TestWriter {
  readonly ownership: Ownership;
  /** Opens a batch without storing it. */
  open(batch: RowBatch, epoch: Epoch): TestBatch;
  store(batch: RowBatch, epoch: Epoch): Promise<Stored>;
}

export interface TestStore {
  /** Stores a batch as the only writer of the group. */
  store(batch: RowBatch): Promise<Stored>;
  /** Creates another writer of the group, with an ownership of its own. @param url of ClickHouse, or of a proxy */
  writer(url?: string): TestWriter;
  /** Logs in as the administrator. */
  readonly client: ClickHouseClient;
  /** Logs in with the account of the writer. */
  readonly writerClient: ClickHouseClient;
  close(): Promise<void>;
  read<Row>(query: string): Promise<Row[]>;
}

/**
 * Creates a store on an empty database with the newest schema, which no other store has.
 *
 * @param database `createDatabase` for a test that changes tables, or looks at what ClickHouse keeps of them
 */
export async function createTestStore(
  url: string,
  database: (url: string) => Promise<TestDatabase> = takeDatabase,
): Promise<TestStore> {
  const { config, release } = await database(url);
  const clients: ClickHouseClient[] = [];
  const client = connect(url, ADMINISTRATOR);
  const writerClient = connect(url);
  const groupId = `group/of ${config.CLICKHOUSE_DATABASE}`;

  function connect(clientUrl: string, account: Account = WRITER_ACCOUNT): ClickHouseClient {
    const connecting = { ...config, ...account, CLICKHOUSE_URL: clientUrl };
    const options = { application: 'test', requestTimeoutMs: 240_000, connectionsMax: 4 };
    const created = createClickHouse(connecting, options);
    clients.push(created);
    return created;
  }

  function writer(writerUrl?: string): TestWriter {
    const own = writerUrl === undefined ? writerClient : connect(writerUrl);
    const ownership = new Ownership({ client: own, groupId, writerId: randomUUID(), isMember: async () => false });
    const store = new StagedStore({ client: own, ownership, groupId, statementTimeoutMs: 230_000 });
    return {
      ownership,
      open(batch, epoch) {
        let last: StagedBatch | undefined;
        return {
          async store() {
            await last?.end();
            last = store.open(batch, epoch, () => undefined);
            return await last.store();
          },
        };
      },
      async store(batch, epoch) {
        const deadLetters: DeadLetter[] = [];
        const stored = await store.open(batch, epoch, (found) => deadLetters.push(...found)).store();
        return { ...stored, deadLetters };
      },
    };
  }

  const only = writer();
  return {
    client,
    writerClient,
    async close() {
      await Promise.all(clients.map((created) => created.close()));
      await release();
    },
    writer,
    store: (batch) => only.store(batch, { incarnation: 1, generation: 1 }),
    async read<Row>(query: string) {
      return await (await client.query({ query, format: 'JSONEachRow' })).json<Row>();
    },
  };
}

/** The default timestamp of the tests' events, in milliseconds. */
export const NOON = Date.UTC(2026, 2, 1, 12);

export function eventRow(row: Partial<EventRow> = {}): EventRow {
  const timestamp = row.timestamp ?? NOON;
  return { workspace_id: 'test', uuid: randomUUID(), event: 'e', received_at: timestamp * 1_000, ...row, timestamp };
}

export function changeRow(row: Partial<ChangeRow> & Pick<ChangeRow, 'operation' | 'id'>): ChangeRow {
  return { workspace_id: 'test', kind: 'user', version: NOON * 1_000, change_id: randomUUID(), ...row };
}

export function batchOf(events: readonly EventRow[], changes: readonly ChangeRow[] = []): RowBatch {
  const lines = (rows: readonly object[]) => rows.map((row) => JSON.stringify(row));
  return { events: messages('events', lines(events)), changes: messages('changes', lines(changes)), deadLetters: [] };
}

/** Returns rows as the writer gets them from Kafka, ten per message. */
export function messages(kind: RowMessage['kind'], lines: readonly string[]): RowMessage[] {
  return Array.from({ length: Math.ceil(lines.length / 10) }, (_, index) => ({
    kind,
    topic: `test.${kind}`,
    partition: 3,
    offset: String(100 + index),
    value: Buffer.from(`${lines.slice(index * 10, index * 10 + 10).join('\n')}\n`),
  }));
}
