import { resolve } from 'node:path';
import { ArgumentsError, parseArguments, readArguments } from '@sluice/shared/config/command-line';

const FORMATS = ['ndjson', 'csv', 'parquet'] as const;

export type ExportFormat = (typeof FORMATS)[number];

const SUBJECTS = ['events', 'users', 'organizations'] as const;

/** What is exported. */
export type ExportSubject = (typeof SUBJECTS)[number];

/** Parameters that the command sets itself. */
const OWN_PARAMETERS = {
  events: ['format', 'after'],
  users: ['limit', 'cursor', 'orderByField', 'orderByDirection'],
  organizations: ['limit', 'cursor', 'orderByField', 'orderByDirection'],
} as const satisfies Record<ExportSubject, readonly string[]>;

/** `name` is what a person types to run the command. */
export function exportHelp(name: string): string {
  return `Usage: ${name} [options] startDate=DATE [PARAMETER=VALUE ...]
       ${name} [options] users|organizations [PARAMETER=VALUE ...]

Writes all events that match to a file: GET /events/export of query-api. Parameters are those of GET /events/export,
such as endDate=2026-03-31 event=signed_up 'properties.amount[gte]=10' orderByDirection=DESC (docs/guide/export.md).
With users or organizations it writes these with their properties: all pages of GET /users or GET /organizations, whose
filters are parameters, such as properties.plan=pro.

  --out FILE            the file (default events.FORMAT, users.ndjson or organizations.ndjson in this folder); it must not
                        exist. Until it is complete, its name is FILE.part
  --format FORMAT       ${FORMATS.join(', ')} (default ndjson, which is the only one of users and organizations)
  --url URL             the address of query-api (default http://127.0.0.1:4001)
  --key KEY             an API key with the scope "query" (default: SLUICE_API_KEY, else the development key of
                        npm start)
  --give-up-after S     seconds without any event after which the export stops (default 60)
  --help                this text

An export of events that breaks off continues, as ndjson behind the last event of FILE.part, otherwise from its beginning. So
does the same command when it is run again. One of users or organizations continues while the command runs, and begins anew when
it is run again.

Exit codes: 0 the file is complete, 1 it is not, 2 the arguments are wrong, 130 interrupted.`;
}

/** The arguments of `sluice export`, checked. */
export interface ExportArguments {
  readonly subject: ExportSubject;
  readonly file: string;
  readonly format: ExportFormat;
  readonly url: URL;
  /** `undefined`: the key comes from the environment or the data folder. */
  readonly key: string | undefined;
  /** What is sent to query-api, without the format. */
  readonly parameters: ReadonlyMap<string, string>;
  readonly giveUpAfterMs: number;
}

/** @throws {ArgumentsError} */
export function parseExportArguments(args: readonly string[], cwd: string): ExportArguments {
  const { values, positionals } = parseArguments({
    args: [...args],
    allowPositionals: true,
    options: {
      out: { type: 'string' },
      format: { type: 'string', default: 'ndjson' },
      url: { type: 'string', default: 'http://127.0.0.1:4001' },
      key: { type: 'string' },
      'give-up-after': { type: 'string', default: '60' },
    },
  });
  const named = SUBJECTS.find((name) => name === positionals[0]);
  const subject = named ?? 'events';
  return readArguments({
    subject: () => subject,
    file: () => resolve(cwd, values.out ?? `${subject}.${values.format}`),
    format: () => parseFormat(values.format, subject),
    url: () => parseUrl(values.url),
    key: () => values.key,
    parameters: () => parseParameters(named ? positionals.slice(1) : positionals, subject),
    giveUpAfterMs: () => 1_000 * parseSeconds(values['give-up-after']),
  });
}

function parseFormat(text: string, subject: ExportSubject): ExportFormat {
  if (subject !== 'events' && text !== 'ndjson') throw new ArgumentsError(`--format of ${subject} must be ndjson.`);
  const format = FORMATS.find((name) => name === text);
  if (format) return format;
  throw new ArgumentsError(`--format must be one of: ${FORMATS.join(', ')}.`);
}

function parseParameters(texts: readonly string[], subject: ExportSubject): ReadonlyMap<string, string> {
  const parameters = new Map<string, string>();
  const errors: string[] = [];
  const own: readonly string[] = OWN_PARAMETERS[subject];
  for (const text of texts) {
    const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
    if (name === undefined || value === undefined) errors.push(`${text} is not PARAMETER=VALUE.`);
    else if (own.includes(name)) errors.push(`${name} is set by the command itself.`);
    else if (parameters.has(name)) errors.push(`${name} is given twice.`);
    else parameters.set(name, value);
  }
  if (subject === 'events' && !parameters.has('startDate')) errors.push('startDate=DATE is needed.');
  if (errors.length > 0) throw new ArgumentsError(errors.join('\n'));
  return parameters;
}

function parseUrl(text: string): URL {
  const url = URL.parse(text);
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url;
  throw new ArgumentsError('--url must be an http:// or https:// address.');
}

function parseSeconds(text: string): number {
  if (/^\d{1,7}$/.test(text)) return Number(text);
  throw new ArgumentsError('--give-up-after must be a whole number of seconds.');
}
