import { randomUUID } from 'node:crypto';
import { type ClickHouseClient, createClickHouse } from '@sluice/shared/clickhouse/client';
import { migrate } from '@sluice/shared/clickhouse/migrate';
import { createLogger } from '@sluice/shared/log';
import type { ChangeRow, EventRow } from '@sluice/shared/rows';
import type { DeadLetter } from '../dead-letters/dead-letter.ts';
import type { Epoch } from '../epoch.ts';
import { createOwnership, type Ownership } from '../ownership.ts';
import type { RowBatch, RowMessage } from '../row-batch.ts';
import { createStagedStore } from '../staged-store.ts';

/** What became of a batch. */
export interface Stored {
  /** How many events were loaded. */
  readonly events: number;
  /** The rows that cannot be stored. */
  readonly dead: readonly DeadLetter[];
}

export interface TestWriter {
  readonly ownership: Ownership;
  store(batch: RowBatch, epoch: Epoch): Promise<Stored>;
}

export interface TestStore {
  /** Stores a batch as the only writer there is. */
  store(batch: RowBatch): Promise<Stored>;
  /** Another writer of the group, with what it knows about who owns the partitions. */
  writer(): TestWriter;
  readonly client: ClickHouseClient;
  read<Row>(query: string): Promise<Row[]>;
}

/** A store on a database of its own, with the newest schema. */
export async function createTestStore(url: string): Promise<TestStore> {
  const config = {
    CLICKHOUSE_URL: url,
    CLICKHOUSE_DATABASE: `store_${randomUUID().replaceAll('-', '')}`,
    CLICKHOUSE_USER: 'default',
    CLICKHOUSE_PASSWORD: '',
  };
  await migrate(config, createLogger('test', 'silent'));
  const client = createClickHouse(config, { application: 'test', requestTimeoutMs: 30_000, connectionsMax: 4 });
  const groupId = `group/of ${config.CLICKHOUSE_DATABASE}`;

  function writer(): TestWriter {
    const ownership = createOwnership({ client, groupId, writerId: randomUUID(), isMember: async () => false });
    const store = createStagedStore({ client, ownership, groupId, statementTimeoutMs: 20_000 });
    return {
      ownership,
      async store(batch, epoch) {
        const dead: DeadLetter[] = [];
        const events = await store.open(batch, epoch, (letters) => dead.push(...letters)).store();
        return { events, dead };
      },
    };
  }

  const only = writer();
  return {
    client,
    writer,
    store: (batch) => only.store(batch, { incarnation: 1, generation: 1 }),
    async read<Row>(query: string) {
      return await (await client.query({ query, format: 'JSONEachRow' })).json<Row>();
    },
  };
}

/** Milliseconds: the time of the tests' events. */
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
  return { events: messages('events', lines(events)), changes: messages('changes', lines(changes)), unreadable: [] };
}

/** Rows as the writer gets them, ten a message. */
export function messages(kind: RowMessage['kind'], lines: readonly string[]): RowMessage[] {
  return Array.from({ length: Math.ceil(lines.length / 10) }, (_, index) => ({
    kind,
    topic: `test.${kind}`,
    partition: 3,
    offset: String(100 + index),
    value: Buffer.from(`${lines.slice(index * 10, index * 10 + 10).join('\n')}\n`),
  }));
}
