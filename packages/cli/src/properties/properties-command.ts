import { ArgumentsError } from '@sluice/shared/config/command-line';
import { printable } from '@sluice/shared/text/printable';
import type { Command } from '../command/command.ts';
import { parseCommand } from '../command/parse-command.ts';
import { inColumns, megabytes, percentageOf, processTerminal, type Terminal } from '../command/terminal.ts';
import { describeFailure, describeResponse } from '../transfer/describe-response.ts';
import { findKey } from '../transfer/find-key.ts';

/** How long query-api may take for a response, in milliseconds. */
const RESPONSE_MS_MAX = 60_000;

/** Declares which properties of events are fast, by query-api. */
export const propertiesCommand: Command = {
  help,
  async run(args, { env }) {
    const parsed = parse(args);
    const key = await findKey(parsed.key, env);
    try {
      return await runPropertiesCommand(parsed, requestsTo(parsed.url, key), processTerminal);
    } catch (error) {
      if (!(error instanceof NotAnswered)) throw error;
      console.error(error.message);
      return 1;
    }
  },
};

function help(name: string): string {
  return `Usage: ${name} COMMAND [options]

Declares which properties of the events of a workspace are fast: reports that group by them, measure them or filter by them read
a column of each in place of the JSON text (docs/guide/dashboards.md#fast-properties).

  list                          shows the properties that are fast
  proposed                      shows which properties reports have read from the text in the last seven days, and how many
                                bytes these reports have read
  progress                      shows of how many events of each month the columns are filled
  declare NAME [NAME ...]       makes properties fast besides those that are; 16 at most
  withdraw NAME [NAME ...] [--yes]
                                makes them ordinary ones again
    --yes                       does not ask for confirmation, which withdraw needs
    --url URL                   the address of query-api (default http://127.0.0.1:4001)
    --key KEY                   an API key of the workspace with the scope "query", for declare and withdraw with "admin"
                                (default: SLUICE_API_KEY, else the development key of npm start)

Exit codes: 0 done, 1 not done, 2 wrong arguments.`;
}

const USAGE = 'Use list, proposed, progress, declare NAME [NAME ...] or withdraw NAME [NAME ...].';

export interface PropertiesArguments {
  readonly command: 'list' | 'proposed' | 'progress' | 'declare' | 'withdraw';
  readonly names: readonly string[];
  readonly yes: boolean;
  readonly url: URL;
  /** `undefined`: the key comes from the environment or the data folder. */
  readonly key: string | undefined;
}

/** @throws {ArgumentsError} */
export function parse(args: readonly string[]): PropertiesArguments {
  const { command, operands, flags, texts } = parseCommand(args, {
    commands: { list: 'none', proposed: 'none', progress: 'none', declare: 'some', withdraw: 'some' },
    texts: { url: 'http://127.0.0.1:4001', key: '' },
    flags: ['yes'],
    usage: USAGE,
  });
  const url = URL.parse(texts.url);
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    throw new ArgumentsError('--url must be an http:// or https:// address.');
  }
  return { command, names: [...new Set(operands)], yes: flags.yes, url, key: texts.key || undefined };
}

/** query-api cannot be reached, or refuses the request. The message says so. */
export class NotAnswered extends Error {
  override readonly name = 'NotAnswered';
}

/** Sends a request to a path behind `/properties/fast`, and returns the JSON of the response. @throws {NotAnswered} */
export type Requests = <Body>(path: '' | '/proposed' | '/progress', properties?: readonly string[]) => Promise<Body>;

/** Returns what sends requests to query-api. A request with properties declares these. */
export function requestsTo(url: URL, key: string): Requests {
  return async (path, properties) => {
    const address = `${url.origin}${url.pathname.replace(/\/$/, '')}/properties/fast${path}`;
    const response = await fetch(address, {
      headers: { authorization: `Bearer ${key}`, ...(properties && { 'content-type': 'application/json' }) },
      ...(properties && { method: 'PUT', body: JSON.stringify({ properties }) }),
      signal: AbortSignal.timeout(RESPONSE_MS_MAX),
    }).catch((error: Error) => {
      throw new NotAnswered(`query-api at ${url.host} does not answer: ${describeFailure(error.cause ?? error)}.`);
    });
    const text = await response.text();
    if (!response.ok) throw new NotAnswered(printable(describeResponse(response.status, text)));
    return JSON.parse(text);
  };
}

interface Properties {
  readonly properties: readonly string[];
}

interface Proposed {
  readonly properties: readonly {
    readonly name: string;
    readonly reads: number;
    readonly bytes: number;
    readonly mayBeFast: boolean;
    readonly isFast: boolean;
  }[];
}

interface Progress {
  readonly months: readonly { readonly month: string; readonly events: number; readonly filled: number }[];
}

/** Runs the command, and returns the exit code. @throws {NotAnswered} */
export async function runPropertiesCommand(
  { command, names, yes }: Pick<PropertiesArguments, 'command' | 'names' | 'yes'>,
  request: Requests,
  { print, confirm }: Terminal,
): Promise<number> {
  switch (command) {
    case 'list':
      return printAll(print, (await request<Properties>('')).properties.map(printable), 'no property is fast');
    case 'proposed':
      return printTable(print, proposedRows(await request<Proposed>('/proposed')), 'reports have read no property');
    case 'progress':
      return printTable(print, progressRows(await request<Progress>('/progress')), 'there are no events');
    case 'declare': {
      const { properties } = await request<Properties>('');
      return await put([...new Set([...properties, ...names])], request, print);
    }
    case 'withdraw': {
      const { properties } = await request<Properties>('');
      const unknown = names.filter((name) => !properties.includes(name));
      if (unknown.length > 0) {
        print(`not fast: ${unknown.map(printable).join(', ')}; nothing was withdrawn`);
        return 1;
      }
      print('Reports read these from the text again, and their columns are emptied within a day.');
      if (!yes && !(await confirm('Go on? [y/N] '))) {
        print('nothing was withdrawn');
        return 1;
      }
      return await put(
        properties.filter((name) => !names.includes(name)),
        request,
        print,
      );
    }
  }
}

async function put(wanted: readonly string[], request: Requests, print: Terminal['print']): Promise<number> {
  const { properties } = await request<Properties>('', wanted);
  return printAll(print, properties.map(printable), 'no property is fast now');
}

function printAll(print: Terminal['print'], lines: readonly string[], none: string): number {
  for (const line of lines.length === 0 ? [none] : lines) print(line);
  return 0;
}

/** @param rows the first one is their header */
function printTable(print: Terminal['print'], rows: readonly (readonly string[])[], none: string): number {
  return printAll(print, rows.length === 1 ? [] : inColumns(rows), none);
}

function proposedRows({ properties }: Proposed): readonly (readonly string[])[] {
  const rows = properties.map(({ name, reads, bytes, mayBeFast, isFast }) => [
    printable(name),
    String(reads),
    megabytes(bytes),
    isFast ? 'is fast' : mayBeFast ? 'may be fast' : 'cannot be fast',
  ]);
  return [['property', 'reads', 'read', 'columns'], ...rows];
}

function progressRows({ months }: Progress): readonly (readonly string[])[] {
  const rows = months.map(({ month, events, filled }) => [month, String(events), percentageOf(filled, events)]);
  return [['month', 'events', 'filled'], ...rows];
}
