import { randomUUID } from 'node:crypto';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { TestDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import type { ChangeRow, EventRow } from '@sluice/shared/rows';
import { Ownership } from '@sluice/storage/clickhouse/ownership';
import { ANSWERING_SERVER } from '@sluice/storage/clickhouse/statements';
import type { DeadLetter } from '@sluice/storage/protocol/dead-letter';
import type { OwnEpoch } from '@sluice/storage/protocol/epoch';
import type { RowBatch, RowMessage } from '@sluice/storage/protocol/row-batch';
import { createTestClients, type TestClients } from '@sluice/storage/testing/clients';
import type { StagedBatch, StoredRows } from '../batch/staged-batch.ts';
import { StagedStore } from '../batch/staged-batch.ts';
import { STATEMENTS } from '../batch/statements.ts';

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
  open(batch: RowBatch, epoch: OwnEpoch): TestBatch;
  store(batch: RowBatch, epoch: OwnEpoch): Promise<Stored>;
}

export interface TestStore extends Pick<TestClients, 'database' | 'client' | 'writerClient' | 'close' | 'read'> {
  /** Stores a batch as the only writer of the group. */
  store(batch: RowBatch): Promise<Stored>;
  /** Takes the visitors of all deleted users for deleted: then the users may be erased. */
  settle(): Promise<void>;
  /** Creates another writer of the group, with an ownership of its own. @param url of ClickHouse, or of a proxy */
  writer(url?: string): TestWriter;
}

const SETTLE = `
  INSERT INTO identity_deletions (workspace_id, user_id, version, settled_at)
  SELECT workspace_id, user_id, version, now64(3)
  FROM identity_deletions
  GROUP BY workspace_id, user_id, version
  HAVING max(settled_at) = toDateTime64(0, 3, 'UTC')`;

/** Where the rows of a batch are between its statements: in a session, or with the writer, which sends them with each. */
export const STAGINGS = ['session', 'carried'] as const;

export type Staging = (typeof STAGINGS)[number];

/** The server is the only replica, at which a statement may store. */
const RECORD_SERVER = `
  INSERT INTO writer_replicas (replica, is_gone, changed_at) SELECT ${ANSWERING_SERVER}, false, now64(6)`;

async function endStatements(client: ClickHouseClient, prefix: string): Promise<void> {
  await client.command({ query: STATEMENTS['end-own-statements'].sql, query_params: { prefix } });
}

/**
 * Creates a store on an empty database with the newest schema, which no other store has.
 *
 * @param database `createDatabase` for a test that changes tables, or looks at what ClickHouse keeps of them
 * @param staging of the batches of all its writers
 */
export async function createTestStore(
  url: string,
  database?: (url: string) => Promise<TestDatabase>,
  staging: Staging = 'session',
): Promise<TestStore> {
  const clients = await createTestClients(url, database);
  const groupId = `group/of ${clients.database}`;

  function writer(writerUrl?: string): TestWriter {
    const own = writerUrl === undefined ? clients.writerClient : clients.connect(writerUrl);
    const ownership = new Ownership({ client: own, groupId, writerId: randomUUID(), isMember: async () => false });
    const carried =
      staging === 'carried' ? { endStatements: (prefix: string) => endStatements(own, prefix) } : undefined;
    const store = new StagedStore({ client: own, ownership, groupId, statementTimeoutMs: 230_000, carried });
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

  if (staging === 'carried') await clients.client.command({ query: RECORD_SERVER });
  const only = writer();
  return {
    ...clients,
    writer,
    store: (batch) => only.store(batch, { incarnation: 1, generation: 1, server: '' }),
    async settle() {
      await clients.client.command({ query: SETTLE });
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
