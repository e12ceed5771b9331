import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { readStatements } from '@sluice/storage/clickhouse/statements';

export const STATEMENTS = readStatements(new URL('./audit.sql', import.meta.url), [
  'read-deletions',
  'read-events',
  'read-registers',
  'read-entities',
  'find-events',
  'find-stamped-events',
  'find-deletions',
  'newest-deletions',
  'find-dead-letters',
  'find-registers',
  'find-entities',
  'find-duplicates',
  'read-positions',
  'read-halts',
  'read-gaps',
  'read-given-up',
  'read-retention',
  'read-partition-counts',
  'read-clock',
  'audits-before',
  'record-audit',
  'audited-before',
]);

type Name = keyof typeof STATEMENTS;

export type Parameters = Readonly<Record<string, unknown>>;

/** A quiet share of ClickHouse: one thread. */
const SETTINGS = { max_threads: 1 } as const;

/** ClickHouse, as an audit asks it. All methods throw ClickHouse's errors. */
export class Database {
  readonly #client: ClickHouseClient;

  constructor(client: ClickHouseClient) {
    this.#client = client;
  }

  async read<Row>(name: Name, parameters: Parameters = {}): Promise<Row[]> {
    const result = await this.#client.query({
      query: STATEMENTS[name].sql,
      query_params: { ...parameters },
      clickhouse_settings: SETTINGS,
      format: 'JSONEachRow',
      // Keys of many rows are too long for an address, and it may be logged.
      use_multipart_params: true,
    });
    return await result.json<Row>();
  }

  async run(name: Name, parameters: Parameters): Promise<void> {
    await this.#client.command({
      query: STATEMENTS[name].sql,
      query_params: { ...parameters },
      use_multipart_params: true,
    });
  }

  async insert(table: 'audited_hours' | 'audit_differences', values: readonly object[]): Promise<void> {
    if (values.length > 0) await this.#client.insert({ table, values: [...values], format: 'JSONEachRow' });
  }

  /**
   * Reads the rows of a statement as ClickHouse writes them in RowBinary.
   *
   * @param take reads the row that begins at an offset, and returns where the next one begins; -1 where the bytes end before
   */
  async stream(name: Name, parameters: Parameters, take: (bytes: Buffer, at: number) => number): Promise<void> {
    const { stream } = await this.#client.exec({
      query: `${STATEMENTS[name].sql}\nFORMAT RowBinary`,
      query_params: { ...parameters },
      clickhouse_settings: SETTINGS,
    });
    let rest: Buffer = Buffer.alloc(0);
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
      let at = 0;
      for (let next = 0; at < bytes.length; at = next) {
        next = take(bytes, at);
        if (next < 0) break;
      }
      rest = bytes.subarray(at);
    }
    if (rest.length > 0) throw new Error(`ClickHouse ended amid a row: ${rest.toString('utf8', 0, 300)}`);
  }
}

/** Reads a text of RowBinary; `undefined` where the bytes end before it does. */
export function readText(bytes: Buffer, at: number): { readonly text: string; readonly end: number } | undefined {
  let length = 0;
  let start = at;
  for (let shift = 1; ; shift *= 128) {
    const byte = bytes[start];
    if (byte === undefined) return undefined;
    start += 1;
    length += (byte & 127) * shift;
    if (byte < 128) break;
  }
  const end = start + length;
  return end > bytes.length ? undefined : { text: bytes.toString('utf8', start, end), end };
}

/** Reads an integer of 64 bits that a number holds exactly. */
export function readWide(bytes: Buffer, at: number): number {
  return bytes.readInt32LE(at + 4) * 4_294_967_296 + bytes.readUInt32LE(at);
}
