import { randomUUID } from 'node:crypto';
import { type ClickHouseClient, createClickHouse } from '@sluice/shared/clickhouse/client';
import { migrate } from '@sluice/shared/clickhouse/migrate';
import { createLogger } from '@sluice/shared/log';
import type { ChangeRow, EventRow } from '@sluice/shared/rows';
import type { DeadLetter } from '../dead-letters/dead-letter.ts';
import type { Epoch } from '../epoch.ts';
import { createOwnership, type Ownership } from '../ownership.ts';
import type { RowBatch, RowMessage } from '../row-batch.ts';
import { createStagedStore, type StagedBatch } from '../staged-store.ts';

/** What became of a batch. */
export interface Stored {
  /** How many were loaded. */
  readonly rows: number;
  /** How many were left out because their user was deleted after their receipt. */
  readonly userDeleted: number;
  /** The rows that cannot be stored. */
  readonly dead: readonly DeadLetter[];
}

export interface TestWriter {
  readonly ownership: Ownership;
  /** A batch that is stored step by step, again and again if need be. */
  open(batch: RowBatch, epoch: Epoch): StagedBatch;
  store(batch: RowBatch, epoch: Epoch): Promise<Stored>;
}

export interface TestStore {
  /** Stores a batch as the only writer there is. */
  store(batch: RowBatch): Promise<Stored>;
  /** Another writer of the group, with what it knows about who owns the partitions. */
  writer(options?: TestWriterOptions): TestWriter;
  readonly client: ClickHouseClient;
  close(): Promise<void>;
  read<Row>(query: string): Promise<Row[]>;
}

export interface TestWriterOptions {
  /** How it reaches ClickHouse. Default: as the store does. */
  readonly url?: string;
  /** How long it waits for an answer. Default 30,000. */
  readonly requestTimeoutMs?: number;
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
  const clients: ClickHouseClient[] = [];
  const client = connect({});
  const groupId = `group/of ${config.CLICKHOUSE_DATABASE}`;

  function connect({ url: clientUrl = url, requestTimeoutMs = 30_000 }: TestWriterOptions): ClickHouseClient {
    const connecting = { ...config, CLICKHOUSE_URL: clientUrl };
    const made = createClickHouse(connecting, { application: 'test', requestTimeoutMs, connectionsMax: 4 });
    clients.push(made);
    return made;
  }

  function writer(options?: TestWriterOptions): TestWriter {
    const own = options ? connect(options) : client;
    const ownership = createOwnership({ client: own, groupId, writerId: randomUUID(), isMember: async () => false });
    const store = createStagedStore({ client: own, ownership, groupId, statementTimeoutMs: 20_000 });
    return {
      ownership,
      open: (batch, epoch) => store.open(batch, epoch, () => undefined),
      async store(batch, epoch) {
        const dead: DeadLetter[] = [];
        const stored = await store.open(batch, epoch, (letters) => dead.push(...letters)).store();
        return { ...stored, dead };
      },
    };
  }

  const only = writer();
  return {
    client,
    async close() {
      await Promise.all(clients.map((made) => made.close()));
    },
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
