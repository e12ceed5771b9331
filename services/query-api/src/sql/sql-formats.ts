/** How a result is written. */
interface SqlFormat {
  /** ClickHouse's name. */
  readonly clickHouse: string;
  readonly mediaType: string;
}

/** The formats of a result, by their names in a request. */
export const SQL_FORMATS = {
  json: { clickHouse: 'JSON', mediaType: 'application/json; charset=utf-8' },
  ndjson: { clickHouse: 'JSONEachRow', mediaType: 'application/x-ndjson' },
  csv: { clickHouse: 'CSVWithNames', mediaType: 'text/csv' },
  parquet: { clickHouse: 'Parquet', mediaType: 'application/vnd.apache.parquet' },
  arrow: { clickHouse: 'ArrowStream', mediaType: 'application/vnd.apache.arrow.stream' },
} as const satisfies Readonly<Record<string, SqlFormat>>;

export type SqlFormatName = keyof typeof SQL_FORMATS;

export const SQL_FORMAT_NAMES = Object.keys(SQL_FORMATS) as [SqlFormatName, ...SqlFormatName[]];
