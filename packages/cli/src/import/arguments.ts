import { basename, resolve } from 'node:path';
import { ArgumentsError, parseArguments, readArguments } from '@sluice/shared/config/command-line';
import { FORMATS, type FormatName } from './formats.ts';

/** `name` is what a person types to run the command. */
export function importHelp(name: string): string {
  return `Usage: ${name} [options] FILE

Sends the lines of FILE to Sluice. FILE may be compressed with gzip; - is standard input.

  --format FORMAT       what the lines are (default native):
      native    the JSON body of POST /v1/public/userGroups, or, if it has a "foreignId", of POST /v1/public/users
      export    an event as the command export and GET /events/export write it, the oldest first, or a user or organization
                as that command writes it (docs/guide/export.md)
      segment   a call that Segment or RudderStack has archived in object storage (docs/guide/migrate/from-segment.md)
      posthog   an event as a batch export of PostHog writes it (docs/guide/migrate/from-posthog.md)
      trench    a row of Trench's table "events", as FORMAT JSONEachRow prints it (docs/guide/migrate/from-trench.md)
  --url URL             the address of ingest-api (default http://127.0.0.1:4000)
  --key KEY             an API key with the scope "ingest" (default: SLUICE_API_KEY, else the development key of
                        npm start)
  --concurrency N       how many requests are sent at the same time, 1 to 1000 (default 32). A request is one line,
                        or up to 500 calls
  --refused FILE        the file that lists refused lines with the reasons (default: NAME.refused.txt in this folder)
  --give-up-after S     seconds without any accepted or refused request after which the import stops (default 60);
                        waiting for the rate limit of the key does not count
  --help                this text

Importing a file again stores no call of another format twice, and no event of the native format that has a "timestamp"
or a UUIDv7. Other events are recognised as repeats for at least five minutes; after that they are stored again.

Exit codes: 0 everything was accepted, 1 something was not, 2 the arguments are wrong, 130 interrupted.`;
}

/** The arguments of `sluice import`, checked. */
export interface ImportArguments {
  readonly file: string;
  readonly format: FormatName;
  readonly url: URL;
  /** `undefined`: the key comes from the environment or the data folder. */
  readonly key: string | undefined;
  readonly concurrency: number;
  readonly refusedFile: string;
  readonly giveUpAfterMs: number;
}

/** @throws {ArgumentsError} */
export function parseImportArguments(args: readonly string[], cwd: string): ImportArguments {
  const { values, positionals } = parse(args);
  return readArguments({
    file: () => parseFile(positionals, values.refused, cwd),
    format: () => parseFormat(values.format),
    url: () => parseUrl(values.url),
    key: () => values.key,
    concurrency: () => parseNumber('--concurrency', values.concurrency, 1, 1_000),
    refusedFile: () => resolve(cwd, values.refused ?? defaultRefusedFile(positionals[0])),
    giveUpAfterMs: () => 1_000 * parseNumber('--give-up-after', values['give-up-after'], 0, 1_000_000),
  });
}

function parse(args: readonly string[]) {
  return parseArguments({
    args: [...args],
    allowPositionals: true,
    options: {
      format: { type: 'string', default: 'native' },
      url: { type: 'string', default: 'http://127.0.0.1:4000' },
      key: { type: 'string' },
      concurrency: { type: 'string', default: '32' },
      refused: { type: 'string' },
      'give-up-after': { type: 'string', default: '60' },
    },
  });
}

function parseFile([name, ...others]: readonly string[], refused: string | undefined, cwd: string): string {
  if (name === undefined || others.length > 0) throw new ArgumentsError('One FILE is needed, or - for standard input.');
  if (name === '-') return name;
  const file = resolve(cwd, name);
  if (refused !== undefined && resolve(cwd, refused) === file) {
    throw new ArgumentsError('--refused and FILE must be different files.');
  }
  return file;
}

function defaultRefusedFile(file = '-'): string {
  return `${file === '-' ? 'stdin' : basename(file)}.refused.txt`;
}

function parseFormat(text: string): FormatName {
  if (Object.hasOwn(FORMATS, text)) return text as FormatName;
  throw new ArgumentsError(`--format must be one of: ${Object.keys(FORMATS).join(', ')}.`);
}

function parseUrl(text: string): URL {
  const url = URL.parse(text);
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    throw new ArgumentsError('--url must be an http:// or https:// address.');
  }
  return url;
}

function parseNumber(option: string, text: string, min: number, max: number): number {
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= min && value <= max) return value;
  throw new ArgumentsError(`${option} must be a whole number from ${min} to ${max}.`);
}
