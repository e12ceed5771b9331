import { createHash, randomBytes } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { atServer } from '@sluice/servers/state/connected-server';
import { type ClickHouseClient, createClickHouse } from '@sluice/shared/clickhouse/client';
import { clickHouseEnv } from '@sluice/shared/config';
import { ArgumentsError, Refused } from '@sluice/shared/config/command-line';
import { workspaceName } from '@sluice/shared/keys/keys-file';
import { serverEnv } from '@sluice/shared/servers/server-config';
import { z } from 'zod';
import type { Command } from '../command/command.ts';
import { withLocalSystem } from '../command/local-system.ts';
import { parseCommand } from '../command/parse-command.ts';
import { inColumns } from '../command/terminal.ts';
import { reasonOf } from '../command/unreachable.ts';
import { loadServersOf } from '../servers/chosen-server.ts';
import { accountNames, accountPrefix, createStatements, deleteStatements } from './account-statements.ts';

const APPLICATION = 'sluice-sql-account';

/** Creates the accounts by which analysts' tools read one workspace, as an administrator of ClickHouse. */
export const sqlAccountCommand: Command = {
  help,
  async run(args, { env, cwd }) {
    const parsed = parse(args);
    const schema = z.object({ ...clickHouseEnv, ...serverEnv });
    const configs = loadServersOf(schema, await withLocalSystem(env), parsed.server);
    if (configs.length > 1 && configs.some(({ server }) => server?.partitions !== undefined)) {
      throw new ArgumentsError(
        'Servers have ranges of partitions: --server is needed, and docs/guide/grafana.md says how to read all.',
      );
    }
    if (parsed.command === 'create' && parsed.print) {
      const { CLICKHOUSE_DATABASE: database = '' } = configs[0]?.config ?? {};
      return await withPassword(parsed, cwd, async ({ hash, shown }) => {
        const statements = createStatements({ database, workspace: parsed.workspace, passwordHash: hash });
        console.log(statements.map((statement) => `${statement};\n`).join('\n'));
        // Not among the statements, which ClickHouse writes to its log.
        console.error(shown);
        return 0;
      });
    }
    await using connections = new AsyncDisposableStack();
    const servers = configs.map(({ config, server }): AccountServer => {
      const options = { application: APPLICATION, requestTimeoutMs: 60_000, connectionsMax: 1 };
      const client = connections.adopt(createClickHouse(config, options), (created) => created.close());
      const name = configs.length > 1 ? server?.name : undefined;
      return { name, database: config.CLICKHOUSE_DATABASE, client };
    });
    try {
      return await runOn(servers, parsed, cwd);
    } catch (error) {
      if (error instanceof ArgumentsError || (error as NodeJS.ErrnoException).syscall === 'open') throw error;
      console.error(`${reasonOf(error, 'ClickHouse')}${adviceOn(error)}`);
      return 1;
    }
  },
};

function help(name: string): string {
  return `Usage: ${name} COMMAND [options]

Manages the accounts of ClickHouse by which Metabase, Superset, DBeaver, Tableau and Grafana read one workspace each, and
nothing else: docs/guide/bi.md. Run it as an administrator of ClickHouse (CLICKHOUSE_USER, CLICKHOUSE_PASSWORD).

  create --workspace NAME   creates the account of a workspace with its views, and prints its password, once. Run it again
                            after an upgrade: it brings the views and limits to the new version, and keeps the password
    --new-password          gives an account that exists another password
    --password-file FILE    writes the password to a new file, which only you can read, and does not print it
    --print                 prints the statements, which then have a new password, and runs nothing
  list                      shows the accounts
  delete --workspace NAME   removes the account of a workspace and its views

  --server NAME             on one ClickHouse server only. Default: on all of CLICKHOUSE_SERVERS_FILE

Exit codes: 0 done, 1 not done, 2 wrong arguments.`;
}

interface CreateArguments {
  readonly command: 'create';
  readonly workspace: string;
  readonly newPassword: boolean;
  /** Empty: the password is printed. */
  readonly passwordFile: string;
  readonly print: boolean;
}

type SqlAccountArguments = {
  /** Empty: all servers. */
  readonly server: string;
} & (CreateArguments | { readonly command: 'list' } | { readonly command: 'delete'; readonly workspace: string });

/** @throws {ArgumentsError} */
function parse(args: readonly string[]): SqlAccountArguments {
  const { command, texts, flags } = parseCommand(args, {
    commands: { create: 'none', list: 'none', delete: 'none' },
    texts: { server: '', workspace: '', 'password-file': '' },
    flags: ['new-password', 'print'],
    usage: 'Use create --workspace NAME, list or delete --workspace NAME.',
  });
  const { server, workspace, 'password-file': passwordFile } = texts;
  const isForCreate = flags['new-password'] || flags.print || passwordFile !== '';
  if (command !== 'create' && isForCreate) {
    throw new ArgumentsError('--new-password, --password-file and --print can only be used with create.');
  }
  if (command === 'list') {
    if (workspace !== '') throw new ArgumentsError('list shows all workspaces; leave out --workspace.');
    return { server, command };
  }
  const parsed = workspaceName.safeParse(workspace);
  if (!parsed.success) throw new ArgumentsError(`--workspace ${parsed.error.issues[0]?.message}.`);
  if (command === 'delete') return { server, command, workspace };
  return { server, command, workspace, newPassword: flags['new-password'], passwordFile, print: flags.print };
}

/** A ClickHouse server on which accounts are. */
interface AccountServer {
  /** Undefined where there is only one. */
  readonly name: string | undefined;
  /** Of the services. */
  readonly database: string;
  readonly client: ClickHouseClient;
}

/** @throws ClickHouse's errors @throws {Refused} */
async function runOn(servers: readonly AccountServer[], parsed: SqlAccountArguments, cwd: string): Promise<number> {
  switch (parsed.command) {
    case 'create':
      return await create(servers, parsed, cwd);
    case 'list': {
      const rows = await onEach(servers, async (server) =>
        (await accountsOf(server)).map((row) => [...(server.name === undefined ? [] : [server.name]), ...row]),
      );
      const header = [...(servers.length > 1 ? ['SERVER'] : []), 'ACCOUNT', 'WORKSPACE'];
      for (const line of inColumns([header, ...rows.flat()])) console.log(line);
      return 0;
    }
    case 'delete': {
      const { workspace } = parsed;
      const existed = await onEach(servers, async (server) => await exists(server, workspace));
      await onEach(servers, async (server) => await runAll(server, deleteStatements(server.database, workspace)));
      console.log(existed.includes(true) ? `${workspace} has no account any more` : `${workspace} had no account`);
      return existed.includes(true) ? 0 : 1;
    }
  }
}

async function create(servers: readonly AccountServer[], parsed: CreateArguments, cwd: string): Promise<number> {
  const { workspace, newPassword } = parsed;
  const existed = await onEach(servers, async (server) => await exists(server, workspace));
  const keepsPassword = !newPassword && existed.every(Boolean);
  if (!newPassword && !keepsPassword && existed.includes(true)) {
    throw new Refused(
      'Only some servers have the account: nothing was done. --new-password gives it the same everywhere.',
    );
  }
  const createAll = (passwordHash: string | undefined) =>
    onEach(servers, async (server) => {
      await runAll(server, createStatements({ database: server.database, workspace, passwordHash }));
      return accountNames(server.database, workspace).account;
    });
  const describe = (accounts: readonly string[]) =>
    `${workspace}: account and database ${[...new Set(accounts)].join(', ')}`;
  if (keepsPassword) {
    console.log(`${describe(await createAll(undefined))}. It keeps its password.`);
    return 0;
  }
  return await withPassword(parsed, cwd, async ({ hash, shown }) => {
    console.log(describe(await createAll(hash)));
    console.log(shown);
    return 0;
  });
}

interface Password {
  /** SHA-256, in hex. */
  readonly hash: string;
  /** Says what the password is, or where. */
  readonly shown: string;
}

/** Makes up a password for `use`. A file for it is written first, so that no account has a password that is lost. */
async function withPassword(
  { passwordFile }: CreateArguments,
  cwd: string,
  use: (password: Password) => Promise<number>,
): Promise<number> {
  const password = randomBytes(24).toString('base64url');
  const hash = createHash('sha256').update(password).digest('hex');
  if (passwordFile === '')
    return await use({ hash, shown: `The password, which is shown only this once: ${password}` });
  const file = resolve(cwd, passwordFile);
  await writeFile(file, `${password}\n`, { mode: 0o600, flag: 'wx' });
  try {
    return await use({ hash, shown: `Its password is in ${file}` });
  } catch (error) {
    await rm(file);
    throw error;
  }
}

/** Does the same on each server, one after the other. */
async function onEach<Result>(
  servers: readonly AccountServer[],
  work: (server: AccountServer) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  for (const server of servers) results.push(await atServer(server.name, () => work(server)));
  return results;
}

async function runAll({ client }: AccountServer, statements: readonly string[]): Promise<void> {
  for (const query of statements) await client.command({ query });
}

async function exists(server: AccountServer, workspace: string): Promise<boolean> {
  const { account } = accountNames(server.database, workspace);
  return (await accountsOf(server)).some(([name]) => name === account);
}

/** Returns the name and the workspace of each account. The comment of its database is the workspace. */
async function accountsOf({ client, database }: AccountServer): Promise<[account: string, workspace: string][]> {
  const result = await client.query({
    query: `SELECT users.name, databases.comment
FROM system.users AS users LEFT JOIN system.databases AS databases ON databases.name = users.name
WHERE startsWith(users.name, {prefix:String}) ORDER BY users.name`,
    query_params: { prefix: accountPrefix(database) },
    format: 'JSONCompactEachRow',
  });
  return await result.json<[string, string]>();
}

const ADVICE: Readonly<Record<string, string>> = {
  ACCESS_DENIED: 'Run the command as an administrator of ClickHouse (CLICKHOUSE_USER, CLICKHOUSE_PASSWORD).',
  ACCESS_STORAGE_READONLY:
    'This ClickHouse keeps accounts in files alone: its configuration needs a local_directory among user_directories. The engine of npm start has none.',
};

/** Returns what to configure, in a line of its own. */
function adviceOn(error: unknown): string {
  const advice = ADVICE[(error as { readonly type?: string }).type ?? ''];
  return advice === undefined ? '' : `\n${advice}`;
}
