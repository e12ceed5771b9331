import type { ClickHouseReader } from '../store/clickhouse-reader.ts';

/** Returns a reader with some methods of its own; all others are those of another reader. */
export function readerWith(reader: ClickHouseReader, own: Partial<ClickHouseReader>): ClickHouseReader {
  return {
    read: (request) => reader.read(request),
    readBytes: (request) => reader.readBytes(request),
    close: () => reader.close(),
    ...own,
  };
}
