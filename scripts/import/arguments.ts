import { basename, join, resolve } from 'node:path';
import { ArgumentsError, parseArguments } from '@sluice/shared/command-line';
import { FORMATS, type FormatName } from './formats.ts';

export const IMPORT_HELP = `Usage: npm run import -- [options] FILE

Sends the lines of FILE to Sluice. FILE may be compressed with gzip; - is standard input.

  --format FORMAT       what the lines are (default native):
      native    the JSON body of POST /v1/public/userGroups, or, if it has a "foreignId", of POST /v1/public/users
      export    an event as npm run export and GET /events/export write it, the oldest first (docs/guide/export.md)
      segment   a call that Segment or RudderStack has archived in object storage (docs/guide/migrate/from-segment.md)
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

/** The arguments of `npm run import`, checked. */
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

/**
 * Reads the arguments.
 *
 * @returns `undefined` for `--help`.
 * @throws {ArgumentsError}
 */
export function parseImportArguments(args: readonly string[], cwd: string): ImportArguments | undefined {
  const { values, positionals } = parse(args);
  if (values.help) return undefined;
  const [file, ...others] = positionals;
  if (file === undefined || others.length > 0) throw new ArgumentsError('One FILE is needed, or - for standard input.');
  const name = file === '-' ? 'stdin' : basename(file);
  const refusedFile = resolve(cwd, values.refused ?? join(cwd, `${name}.refused.txt`));
  if (file !== '-' && refusedFile === resolve(cwd, file))
    throw new ArgumentsError('--refused and FILE must be different files.');
  return {
    file: file === '-' ? file : resolve(cwd, file),
    format: parseFormat(values.format),
    url: parseUrl(values.url),
    key: values.key,
    concurrency: parseNumber('--concurrency', values.concurrency, 1, 1_000),
    refusedFile,
    giveUpAfterMs: 1_000 * parseNumber('--give-up-after', values['give-up-after'], 0, 1_000_000),
  };
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
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
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
