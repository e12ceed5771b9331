import { join, resolve } from 'node:path';
import { ArgumentsError, parseArguments, readArguments } from '@sluice/shared/config/command-line';
import {
  changeKeysFile,
  createKey,
  type KeyEntry,
  KeysFileError,
  keyName,
  rateLimit,
  readKeysFile,
  SCOPES,
  type Scope,
  workspaceName,
} from '@sluice/shared/keys/keys-file';
import type { Command, Surroundings } from '../command/command.ts';
import { dataFolder } from '../command/local-system.ts';

/** Creates, lists and revokes API keys. */
export const keysCommand: Command = {
  help,
  async run(args, surroundings) {
    try {
      const defaultFile = defaultKeysFile(surroundings);
      const lines = await runKeysCommand(args, { cwd: surroundings.cwd, defaultFile, now: () => new Date() });
      for (const line of lines) console.log(line);
      return 0;
    } catch (error) {
      if (!(error instanceof UnknownKey || error instanceof KeysFileError)) throw error;
      console.error(error instanceof KeysFileError ? `The keys file ${error.message}.` : error.message);
      return 1;
    }
  },
};

function help(name: string): string {
  return `Usage: ${name} COMMAND [options]

  create --workspace NAME --scopes LIST [--name TEXT] [--rate-limit N]
               creates a key and prints it, once; the file keeps only its hash
  list         shows the keys: id, workspace, scopes, rate limit, time of creation, name
  revoke ID    removes a key; services refuse it within a second

  --workspace NAME   the workspace that the key may write or read: 1 to 100 letters, digits, dots, underscores or hyphens
  --scopes LIST      some of ${SCOPES.join(', ')}, separated by commas; with sql a key may send SQL over its workspace, with
                     webhooks it manages webhooks, with admin the keys, dead letters and links to dashboards of its workspace
  --name TEXT        what the key is for, in up to 100 characters
  --rate-limit N     how many events a second the key may submit, and how many queries a second it may send; a request
                     without events counts as one (default: RATE_LIMIT_DEFAULT of the services, else no limit)
  --file FILE        the keys file (default: API_KEYS_FILE, else keys.json in the data folder of npm start)
  --help             shows this text

Exit codes: 0 success, 1 the file cannot be used or the key does not exist, 2 the arguments are wrong.`;
}

function defaultKeysFile({ env, cwd }: Surroundings): string {
  const file = env['API_KEYS_FILE'];
  return file ? resolve(cwd, file) : join(dataFolder(env), 'keys.json');
}

/** The file has no such key. */
export class UnknownKey extends Error {
  override readonly name = 'UnknownKey';
}

/** What the command takes from its surroundings. */
export interface KeysContext {
  readonly cwd: string;
  readonly defaultFile: string;
  readonly now: () => Date;
}

/**
 * Runs the command and returns the lines to print.
 *
 * @throws {ArgumentsError | UnknownKey}
 * @throws {KeysFileError} when the file cannot be read or is not valid; the file stays as it is
 */
export async function runKeysCommand(args: readonly string[], context: KeysContext): Promise<readonly string[]> {
  const { values, positionals } = parse(args);
  const [command, ...operands] = positionals;
  const file = values.file === undefined ? context.defaultFile : resolve(context.cwd, values.file);
  const unused = Object.entries({
    '--workspace': values.workspace,
    '--scopes': values.scopes,
    '--rate-limit': values['rate-limit'],
    '--name': values.name,
  });
  const given = unused.filter(([, value]) => value !== undefined).map(([option]) => option);
  if (command !== 'create' && given.length > 0) {
    throw new ArgumentsError(`${given.join(' and ')} can only be used with create.`);
  }
  if (command !== 'revoke' && operands.length > 0) throw new ArgumentsError(`Unexpected argument "${operands[0]}".`);
  switch (command) {
    case 'create':
      return await create(file, parseEntry(values, context.now()));
    case 'list':
      return await list(file);
    case 'revoke':
      return await revoke(file, operands);
    default:
      throw new ArgumentsError(
        command === undefined
          ? 'A COMMAND is needed; use one of create, list, revoke.'
          : `Unknown command "${command}"; use one of create, list, revoke.`,
      );
  }
}

async function create(file: string, fields: Omit<KeyEntry, 'id' | 'hash'>): Promise<string[]> {
  const { key, entry } = createKey(fields);
  await changeKeysFile(file, (keys) => [...keys, entry]);
  const { id, workspace, scopes, rateLimit: limit } = entry;
  return [
    key,
    '',
    `The key is shown only this once. Its id is ${id}: workspace ${workspace}, ${scopes.join(' and ')}${limit === undefined ? '' : `, ${limit} a second`}.`,
    `Written to ${file}; services that use this file accept the key within a second.`,
  ];
}

async function list(file: string): Promise<string[]> {
  const keys = await readKeysFile(file);
  if (keys.length === 0) return [`${file} has no keys.`];
  const rows = keys.map(({ id, workspace, scopes, rateLimit: limit, createdAt, name }) => [
    id,
    workspace,
    scopes.join(','),
    limit === undefined ? '-' : `${limit}/s`,
    createdAt ?? '',
    name ?? '',
  ]);
  return table([['ID', 'WORKSPACE', 'SCOPES', 'RATE LIMIT', 'CREATED', 'NAME'], ...rows]);
}

async function revoke(file: string, ids: readonly string[]): Promise<string[]> {
  const [id, ...others] = ids;
  if (id === undefined || others.length > 0) throw new ArgumentsError('revoke needs one ID; list shows the IDs.');
  await changeKeysFile(file, (keys) => {
    const kept = keys.filter((key) => key.id !== id);
    if (kept.length === keys.length) throw new UnknownKey(`${file} has no key "${id}"; list shows the IDs.`);
    return kept;
  });
  return [`The key ${id} is revoked; services that use ${file} refuse it within a second.`];
}

function parse(args: readonly string[]) {
  return parseArguments({
    args: [...args],
    allowPositionals: true,
    options: {
      workspace: { type: 'string' },
      scopes: { type: 'string' },
      'rate-limit': { type: 'string' },
      name: { type: 'string' },
      file: { type: 'string' },
    },
  });
}

function parseEntry(
  values: Partial<Record<'workspace' | 'scopes' | 'rate-limit' | 'name', string | undefined>>,
  now: Date,
): Omit<KeyEntry, 'id' | 'hash'> {
  const { limit, name, ...entry } = readArguments({
    workspace: () => parseWorkspace(values.workspace),
    scopes: () => parseScopes(values.scopes),
    limit: () => parseRateLimit(values['rate-limit']),
    name: () => parseName(values.name),
  });
  return { ...entry, createdAt: now.toISOString(), ...limit, ...name };
}

function parseWorkspace(text: string | undefined): string {
  if (text === undefined) throw new ArgumentsError('create needs --workspace.');
  const result = workspaceName.safeParse(text);
  if (result.success) return result.data;
  throw new ArgumentsError(`--workspace ${result.error.issues.map(({ message }) => message).join(', ')}.`);
}

function parseScopes(text: string | undefined): Scope[] {
  if (text === undefined) throw new ArgumentsError('create needs --scopes.');
  const names = text.split(',').map((name) => name.trim());
  const unknown = names.filter((name) => !SCOPES.some((scope) => scope === name));
  if (unknown.length === 0) return SCOPES.filter((scope) => names.includes(scope));
  throw new ArgumentsError(`Unknown scope ${unknown.map((name) => `"${name}"`).join(', ')}; use ${SCOPES.join(', ')}.`);
}

function parseRateLimit(text: string | undefined): Pick<KeyEntry, 'rateLimit'> {
  if (text === undefined) return {};
  const result = rateLimit.safeParse(/^\d+$/.test(text) ? Number(text) : Number.NaN);
  if (result.success) return { rateLimit: result.data };
  throw new ArgumentsError('--rate-limit must be a whole number of at least 1.');
}

function parseName(text: string | undefined): Pick<KeyEntry, 'name'> {
  if (text === undefined) return {};
  const result = keyName.safeParse(text);
  if (result.success) return { name: result.data };
  throw new ArgumentsError(`--name ${result.error.issues.map(({ message }) => message).join(', ')}.`);
}

function table(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? '').length)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
