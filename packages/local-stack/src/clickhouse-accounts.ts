import { readFile } from 'node:fs/promises';

const SCRIPT = new URL('../../../deploy/clickhouse/accounts.sql', import.meta.url);

/** The accounts that `deploy/clickhouse/accounts.sql` creates. */
export const ACCOUNTS = ['sluice_migrate', 'sluice_writer', 'sluice_query', 'sluice_webhooks'] as const;

export type Account = (typeof ACCOUNTS)[number];

/** How the accounts log in, and where they may work. */
export interface AccountOptions {
  readonly passwords: Readonly<Record<Account, string>>;
  /** The database, or the beginning of the names of several: `sluice` or `test_*`. */
  readonly databases: string;
  /** Rights besides those of the script, such as `GRANT READ ON REMOTE`. Default none. */
  readonly added?: Readonly<Partial<Record<Account, readonly string[]>>>;
}

export interface ProfileSetting {
  readonly value: string;
  /** The lowest and the highest value that a query may set, where there is one. */
  readonly min: string | undefined;
  readonly max: string | undefined;
  /** Whether no query may change it. */
  readonly isFixed: boolean;
}

/** What the script says, in the terms of users.xml. */
export interface AccountsScript {
  readonly profiles: ReadonlyMap<string, ReadonlyMap<string, ProfileSetting>>;
  readonly accounts: ReadonlyMap<Account, { readonly profile: string | undefined; readonly grants: readonly string[] }>;
}

/** Reads `deploy/clickhouse/accounts.sql` for an engine whose accounts are in users.xml. */
export async function readAccounts(databases: string): Promise<AccountsScript> {
  return parseAccounts(await readFile(SCRIPT, 'utf8'), databases);
}

/**
 * @param databases what `ON *` of a grant stands for
 * @throws {Error} on a statement that it does not know: it must not be lost on the way
 */
export function parseAccounts(script: string, databases: string): AccountsScript {
  const profiles = new Map<string, ReadonlyMap<string, ProfileSetting>>();
  const accounts = new Map<Account, { profile: string | undefined; grants: string[] }>();
  for (const statement of statementsOf(script)) {
    const [, profile, settings] = /^CREATE SETTINGS PROFILE IF NOT EXISTS (\w+) SETTINGS (.+)$/.exec(statement) ?? [];
    const [, user, ofProfile] =
      /^CREATE USER IF NOT EXISTS (\w+) IDENTIFIED WITH sha256_hash BY \{\w+:String\}(?: SETTINGS PROFILE (\w+))?$/.exec(
        statement,
      ) ?? [];
    const [, right, grantee] = /^(GRANT .+) TO (\w+)$/.exec(statement) ?? [];
    const [, exception, table, loser] = /^(REVOKE .+ ON )(\w+) FROM (\w+)$/.exec(statement) ?? [];
    if (profile && settings) profiles.set(profile, parseSettings(settings));
    else if (user) accounts.set(accountOf(user), { profile: ofProfile, grants: [] });
    else if (right && grantee) {
      const grants = accounts.get(accountOf(grantee))?.grants;
      if (!grants) throw new Error(`accounts.sql gives rights to ${grantee} before it creates it`);
      grants.push(right.replace(/ ON (\w*)\*$/, (_, tables: string) => ` ON ${onTables(databases, tables)}`));
    } else if (exception && table && loser) {
      // Where databases are several, there is no exception for one table of each.
      const isOne = !databases.endsWith('*');
      if (isOne) accounts.get(accountOf(loser))?.grants.push(`${exception}${databases}.${table}`);
    } else if (!/^(CREATE DATABASE|USE|ALTER USER \w+ IDENTIFIED) /.test(statement)) {
      throw new Error(`accounts.sql has a statement that users.xml has no form for: ${statement}`);
    }
  }
  return { profiles, accounts };
}

/** Where `databases` are several, a right cannot be for some of their tables: then it is for all. */
function onTables(databases: string, tables: string): string {
  return `${databases}.${databases.endsWith('*') ? '' : tables}*`;
}

/** Returns the statements of the script, each in one line and without comments. */
export function statementsOf(script: string): string[] {
  return script
    .replaceAll(/^--.*$/gm, '')
    .split(';')
    .map((statement) => statement.trim().replaceAll(/\s+/g, ' '))
    .filter((statement) => statement !== '');
}

function accountOf(name: string): Account {
  const account = ACCOUNTS.find((known) => known === name);
  if (!account) throw new Error(`accounts.sql names the unknown account ${name}`);
  return account;
}

const SETTING = /^(\w+) = (\d+)(?: MIN (\d+))?(?: MAX (\d+))?( READONLY)?$/;

function parseSettings(list: string): ReadonlyMap<string, ProfileSetting> {
  return new Map(
    list.split(', ').map((text) => {
      const [, name, value, min, max, fixed] = SETTING.exec(text) ?? [];
      if (!name || !value) throw new Error(`accounts.sql has a setting that users.xml has no form for: ${text}`);
      return [name, { value, min, max, isFixed: fixed !== undefined }];
    }),
  );
}
