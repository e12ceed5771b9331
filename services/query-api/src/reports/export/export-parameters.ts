import type { QueryParameters } from '@sluice/shared/http/query-string';
import { countLineFeeds } from '@sluice/shared/text/line-feeds';
import { parseTimestamp } from '@sluice/shared/text/timestamp';
import { z } from 'zod';
import {
  eventFilterable,
  eventParameters,
  parseParameters,
  refuseErrors,
  selectionParameters,
  uuidParameter,
} from '../../records/records.ts';
import { type ReportSelection, reportSelection } from '../report-selection.ts';

/** How an export is written. */
interface Format {
  /** The content type of the response comes first. */
  readonly mediaTypes: readonly string[];
  /** ClickHouse's name of the format. */
  readonly clickHouse: string;
  /** The same without what a response begins with. Default: it begins with a record. */
  readonly continued?: string;
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
    continued: 'CSV',
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

const uuidSchema = uuidParameter('');

/** The parameters of `GET /events/export`, besides those of properties and operators. */
export const exportParameters = {
  ...selectionParameters,
  format: z
    .string()
    .refine(isExportFormat, `must be one of ${Object.keys(EXPORT_FORMATS).join(', ')}`)
    .meta({
      enum: Object.keys(EXPORT_FORMATS),
      description: 'Default: what `Accept` asks for, else `ndjson`.',
    }),
  orderByDirection: eventParameters.orderByDirection.meta({
    default: 'ASC',
    description: '`ASC` is oldest first, `DESC` newest first. In upper or lower case.',
  }),
  after: z
    .string()
    .transform((text, context) => {
      const [time = '', uuidText = '', ...rest] = text.split(',');
      const timestamp = parseTimestamp(time);
      const uuid = uuidSchema.safeParse(uuidText);
      if (timestamp && !timestamp.dateOnly && uuid.success && rest.length === 0) {
        return { timestampMs: timestamp.ms, uuid: uuid.data };
      }
      const message = 'must be the timestamp and the uuid of a record: 2026-03-01T12:00:00.000Z,018f3c5e-…';
      context.addIssue({ code: 'custom', message });
      return z.NEVER;
    })
    .meta({
      description:
        'Continues behind a record: its `timestamp` and its `uuid`, with a comma between them. Repeat all other parameters, with the same `endDate`.',
    }),
} as const;

/** A valid request for an export. */
export interface ExportRequest {
  readonly selection: ReportSelection;
  readonly format: ExportFormat;
  readonly direction: 'ASC' | 'DESC';
  readonly after: { readonly timestampMs: number; readonly uuid: string } | undefined;
}

/**
 * Parses the query of `GET /events/export`.
 *
 * @param accept the header `Accept`
 * @throws {Problem} `invalid_request`, naming every error
 */
export function parseExportRequest(query: QueryParameters, accept: string | undefined): ExportRequest {
  const parsed = parseParameters(exportParameters, eventFilterable, query);
  const { selection, errors } = reportSelection(parsed);
  refuseErrors(errors);
  const { format, orderByDirection, after } = parsed.values;
  return {
    selection,
    format: format ?? acceptedFormat(accept) ?? 'ndjson',
    direction: orderByDirection ?? 'ASC',
    after,
  };
}

/** The first format that `Accept` names. */
function acceptedFormat(accept = ''): ExportFormat | undefined {
  const types = accept.split(',').map((range) => range.split(';')[0]?.trim().toLowerCase());
  return types
    .map((type) => Object.entries(EXPORT_FORMATS).find(([, { mediaTypes }]) => mediaTypes.some((one) => one === type)))
    .find((found) => found !== undefined)?.[0] as ExportFormat | undefined;
}
