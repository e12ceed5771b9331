import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import type { LocalClickHouse } from '@sluice/local-stack/clickhouse';
import { TEST_ACCOUNTS } from '@sluice/shared/clickhouse/testing/test-accounts';
import { inherited } from '@sluice/shared/testing/inherited';
import { programFile } from '@sluice/shared/testing/program-file';
import { readClickHouse } from './clickhouse.ts';
import { ownClickHouse } from './engines.ts';

// The local engine keeps accounts in files alone, and reads them when it starts. So what `sluice sql-account create --print` prints is
// put into a file of users.d, statement by statement: what is tested is what the command runs.

/** The database of the services, beside which the accounts have their views. */
export const DATABASE = 'sluice';

/** An account for analysts' tools, as `sluice sql-account create --print` makes it. */
export interface PrintedAccount {
  /** Also the name of the database with its views. */
  readonly account: string;
  readonly password: string;
  readonly statements: readonly string[];
}

/** Runs `sluice sql-account create --print`, which connects to nothing. */
export async function printAccount(workspace: string): Promise<PrintedAccount> {
  const args = [programFile('sluice'), 'sql-account', 'create', '--workspace', workspace, '--print'];
  const env = { ...inherited(), CLICKHOUSE_URL: 'http://127.0.0.1:1', CLICKHOUSE_DATABASE: DATABASE };
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { env });
  const statements = stdout
    .trim()
    .split(/;\n+/)
    .map((statement) => statement.replace(/;$/, ''));
  const [, account = ''] = /^CREATE DATABASE IF NOT EXISTS `(\w+)`/.exec(statements[0] ?? '') ?? [];
  return { account, password: stderr.trim().split(' ').at(-1) ?? '', statements };
}

/** A ClickHouse with accounts for analysts' tools. */
export interface ToolsClickHouse extends LocalClickHouse, AsyncDisposable {
  /** In the order of the workspaces. */
  readonly printed: readonly PrintedAccount[];
  /** Creates the views of the accounts, once the tables are there. */
  createViews(): Promise<void>;
}

/**
 * Starts a ClickHouse of its own with the accounts of some workspaces.
 *
 * @param added files of users.d besides
 */
export async function clickHouseForTools(
  workspaces: readonly string[],
  added: Readonly<Record<string, string>> = {},
): Promise<ToolsClickHouse> {
  const printed = await Promise.all(workspaces.map(printAccount));
  const files = printed.map(({ account, statements }) => [`${account}.xml`, usersFileOf(statements)] as const);
  const clickhouse = await ownClickHouse({
    accounts: { ...TEST_ACCOUNTS, databases: DATABASE },
    usersFiles: { ...Object.fromEntries(files), ...added },
  });
  return Object.assign(clickhouse, {
    printed,
    async createViews() {
      const statements = printed.flatMap((one) => one.statements.filter((statement) => !isOfAccounts(statement)));
      for (const statement of statements) await readClickHouse(clickhouse.url, statement);
    },
  });
}

/** Whether a statement is about accounts, which the local engine has in files. */
export function isOfAccounts(statement: string): boolean {
  return /^(CREATE|ALTER|DROP) (USER|ROW POLICY|SETTINGS PROFILE)\b|^GRANT\b/.test(statement);
}

/** What another statement completes. */
const FIRST =
  /^(ALTER USER `\w+` IDENTIFIED WITH sha256_hash BY '[0-9a-f]{64}'|CREATE SETTINGS PROFILE IF NOT EXISTS `\w+`|CREATE ROW POLICY IF NOT EXISTS `\w+` ON `\w+`\.\w+ USING 0 TO `\w+`)$/;

interface User {
  readonly elements: string[];
  readonly grants: string[];
  readonly filters: string[];
}

/**
 * Returns a file of users.d that says the same as the statements about accounts.
 *
 * @throws {Error} on a statement that it does not know: it must not be lost on the way
 */
export function usersFileOf(statements: readonly string[]): string {
  const users = new Map<string, User>();
  const profiles: string[] = [];
  const user = (name: string): User => {
    const known = users.get(name) ?? { elements: ['<quota>default</quota>'], grants: [], filters: [] };
    users.set(name, known);
    return known;
  };
  for (const statement of statements.filter(isOfAccounts)) {
    const [, created, hash, hosts, rest = ''] =
      /^CREATE USER IF NOT EXISTS `(\w+)` IDENTIFIED WITH sha256_hash BY '([0-9a-f]{64})' HOST (NONE|ANY)(.*)$/.exec(
        statement,
      ) ?? [];
    const [, profile, settings] = /^ALTER SETTINGS PROFILE `(\w+)` SETTINGS\n(.*)$/s.exec(statement) ?? [];
    const [, table, filter, reader] =
      /^ALTER ROW POLICY `\w+` ON `\w+`\.(\w+) USING (.*) TO `(\w+)`$/s.exec(statement) ?? [];
    const [, grant, grantee] = /^(GRANT SELECT ON \S+) TO `(\w+)`$/.exec(statement) ?? [];
    if (created && hash) {
      const networks = hosts === 'ANY' ? '<networks><ip>::/0</ip></networks>' : '<networks/>';
      user(created).elements.push(`<password_sha256_hex>${hash}</password_sha256_hex>`, networks, ...ofRest(rest));
    } else if (profile && settings) {
      profiles.push(element(profile, profileXml(settings)));
    } else if (table && filter && reader) {
      user(reader).filters.push(element(table, element('filter', escaped(filter))));
    } else if (grant && grantee) {
      user(grantee).grants.push(element('query', grant));
    } else if (!FIRST.test(statement)) {
      throw new Error(`users.xml has no form for: ${statement}`);
    }
  }
  const all = [...users].map(([name, { elements, grants, filters }]) => {
    const databases = filters.length > 0 ? element('databases', element(DATABASE, filters.join(''))) : '';
    return element(name, elements.join('') + element('grants', grants.join('')) + databases);
  });
  return element('clickhouse', element('profiles', profiles.join('')) + element('users', all.join('\n')));
}

function ofRest(rest: string): string[] {
  if (rest === '') return [];
  const [, database = '', profile = ''] = / DEFAULT DATABASE `(\w+)` SETTINGS PROFILE `(\w+)`$/.exec(rest) ?? [];
  if (profile === '') throw new Error(`users.xml has no form for: ${rest}`);
  return [element('default_database', database), element('profile', profile)];
}

const SETTING = /^(\w+) = ('\w*'|\d+)(?: MIN (\d+))?(?: MAX (\d+))?( CHANGEABLE_IN_READONLY)?$/;

function profileXml(settings: string): string {
  const constraints: string[] = [];
  const values = settings.split(',\n').map((text) => {
    const [, name, value, min, max, isChangeable] = SETTING.exec(text.trim()) ?? [];
    if (!name || !value) throw new Error(`users.xml has no form for the setting: ${text}`);
    const bounds = [min && element('min', min), max && element('max', max)].filter(Boolean).join('');
    if (isChangeable) constraints.push(element(name, `${bounds}<changeable_in_readonly/>`));
    else if (bounds) throw new Error(`users.xml has no form for the setting: ${text}`);
    return element(name, value.replaceAll("'", ''));
  });
  return values.join('') + element('constraints', constraints.join(''));
}

function element(name: string, content: string): string {
  return `<${name}>${content}</${name}>`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
