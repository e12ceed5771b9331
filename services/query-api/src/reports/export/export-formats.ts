import { countLineFeeds } from '@sluice/shared/text/line-feeds';

/** How an export is written. */
interface Format {
  /** The content type of the response comes first. */
  readonly mediaTypes: readonly string[];
  /** ClickHouse's name of the format. */
  readonly clickHouse: string;
  /** Counts the records of one result; `undefined` when the format has no last line. */
  readonly Counter?: new () => RecordCounter;
  /** The last line, which says that all was sent. */
  readonly trailer?: (events: number) => string;
}

/** Counts the records of one result, whose bytes it is given in their order. */
interface RecordCounter {
  /** Returns how many records these bytes end. */
  count(bytes: Buffer): number;
}

/** A record is a line: JSON escapes line feeds. */
class LineCounter implements RecordCounter {
  count(bytes: Buffer): number {
    return countLineFeeds(bytes);
  }
}

const LINE_FEED = 0x0a;
const QUOTE = 0x22;

/** Counts lines, without the one of the names and without line feeds inside quotes. */
class CsvCounter implements RecordCounter {
  #isQuoted = false;
  #isNamed = false;

  count(bytes: Buffer): number {
    let count = 0;
    for (const byte of bytes) {
      if (byte === QUOTE) this.#isQuoted = !this.#isQuoted;
      else if (byte === LINE_FEED && !this.#isQuoted) count += 1;
    }
    if (this.#isNamed || count === 0) return count;
    this.#isNamed = true;
    return count - 1;
  }
}

export const EXPORT_FORMATS = {
  ndjson: {
    mediaTypes: ['application/x-ndjson', 'application/ndjson'],
    clickHouse: 'TSVRaw',
    Counter: LineCounter,
    trailer: (events) => `{"complete":true,"events":${events}}\n`,
  },
  csv: {
    mediaTypes: ['text/csv'],
    clickHouse: 'CSVWithNames',
    Counter: CsvCounter,
    trailer: (events) => `#complete,${events}\n`,
  },
  parquet: {
    mediaTypes: ['application/vnd.apache.parquet'],
    clickHouse: 'Parquet',
  },
} as const satisfies Readonly<Record<string, Format>>;

export type ExportFormat = keyof typeof EXPORT_FORMATS;

/** Returns how a format is written. */
export function formatOf(name: ExportFormat): Format {
  return EXPORT_FORMATS[name];
}

export function isExportFormat(text: string): text is ExportFormat {
  return Object.hasOwn(EXPORT_FORMATS, text);
}
