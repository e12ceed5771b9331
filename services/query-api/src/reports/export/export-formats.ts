import { countLineFeeds } from '@sluice/shared/line-feeds';

/** How an export is written. */
interface Format {
  /** The content type of the response comes first. */
  readonly mediaTypes: readonly string[];
  /** ClickHouse's name of the format. */
  readonly clickHouse: string;
  /** How many records some bytes of the result end; `undefined` when the format has no last line. */
  readonly createCounter?: () => (bytes: Buffer) => number;
  /** The last line, which says that all was sent. */
  readonly trailer?: (events: number) => string;
}

export const EXPORT_FORMATS = {
  ndjson: {
    mediaTypes: ['application/x-ndjson', 'application/ndjson'],
    clickHouse: 'TSVRaw',
    // A record is a line: JSON escapes line feeds.
    createCounter: () => countLineFeeds,
    trailer: (events) => `{"complete":true,"events":${events}}\n`,
  },
  csv: {
    mediaTypes: ['text/csv'],
    clickHouse: 'CSVWithNames',
    createCounter: createCsvCounter,
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

const LINE_FEED = 0x0a;
const QUOTE = 0x22;

/** Counts lines, without the one of the names and without line feeds inside quotes. */
function createCsvCounter(): (bytes: Buffer) => number {
  let quoted = false;
  let named = false;
  return (bytes) => {
    let count = 0;
    for (const byte of bytes) {
      if (byte === QUOTE) quoted = !quoted;
      else if (byte === LINE_FEED && !quoted) count += 1;
    }
    if (named || count === 0) return count;
    named = true;
    return count - 1;
  };
}
