import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { ADMINISTRATOR } from '@sluice/shared/clickhouse/testing/test-accounts';
import { createNewest } from '@sluice/shared/clickhouse/testing/test-database';
import { readClickHouse } from '../clickhouse.ts';
import { clickHouseForTools, DATABASE, type PrintedAccount, type ToolsClickHouse } from '../sql-account.ts';
import { installClients, installJavaClients, javaOf, pythonOf } from './installation.ts';

/** In each row that the account of `acme` may not see, whatever it sends: of others, of users who are deleted, and expired ones. */
export const SECRET = randomUUID();

/** A ClickHouse with two workspaces, each with an account for analysts' tools. */
export interface ToolsWorld extends AsyncDisposable {
  readonly clickhouse: ToolsClickHouse;
  /** Of the workspace `acme`. */
  readonly acme: PrintedAccount;
  /** Of the workspace `o.ther`. */
  readonly other: PrintedAccount;
  /** Runs a statement as the administrator, in the database of the services. */
  asAdministrator(sql: string): Promise<string>;
}

/** The owner of the views of a workspace whose account is yet to be created: the local engine has accounts in files alone. */
const OWNER_OF_NEW = `<clickhouse><users><sluice_views_new>
  <password_sha256_hex>${'0'.repeat(64)}</password_sha256_hex><networks/><quota>default</quota>
  <grants><query>GRANT SELECT ON ${DATABASE}.*</query></grants>
</sluice_views_new></users></clickhouse>`;

/** @param many how many events of `acme` have the name `many` */
export async function startTools(many: number): Promise<ToolsWorld> {
  await Promise.all([installClients([PYTHON]), installJavaClients(areAllRun ? [JDBC, JDBC_OF_METABASE] : [JDBC])]);
  await using started = new AsyncDisposableStack();
  const clickhouse = started.use(await clickHouseForTools(['acme', 'o.ther'], { 'new.xml': OWNER_OF_NEW }));
  await createNewest({ CLICKHOUSE_URL: clickhouse.url, CLICKHOUSE_DATABASE: DATABASE, ...ADMINISTRATOR });
  const asAdministrator = (sql: string) => readClickHouse(clickhouse.url, sql, { database: DATABASE });
  for (const sql of statementsOfData(many)) await asAdministrator(sql);
  await clickhouse.createViews();
  const [acme, other] = clickhouse.printed as [PrintedAccount, PrintedAccount];
  const kept = started.move();
  return { clickhouse, acme, other, asAdministrator, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

const EVENTS =
  'INSERT INTO events (workspace_id, timestamp, received_at, uuid, event, type, user_id, group_id, properties)';

/** Rows of both workspaces; `gone` and two others are deleted, and the deletions wait for their erasure. */
function statementsOfData(many: number): string[] {
  const uuid = 'generateUUIDv4()';
  const event = (workspace: string, at: string, name: string, user: string, properties: string) =>
    `('${workspace}', '${at}', now64(6) - 3600, ${uuid}, '${name}', 'track', '${user}', 'org', '${properties}')`;
  const entity = (workspace: string, kind: string, id: string, other: string) =>
    `('${workspace}', '${kind}', '${id}', '${other}', '2026-03-01 00:00:00', '2026-03-02 00:00:00', 1000)`;
  const property = (workspace: string, kind: string, id: string, name: string, value: string) =>
    `('${workspace}', '${kind}', '${id}', '${name}', (1000, generateUUIDv4(), 'set', '"${value}"'))`;
  const gone = ['gone', `gone-1-${SECRET}`, `gone-2-${SECRET}`];
  const secret = `{"s":"${SECRET}"}`;
  return [
    `${EVENTS} VALUES ${[
      event('acme', '2026-03-02 08:00:00.123', 'paid', 'jane', '{"plan":"pro","amount":9.5}'),
      event('acme', '2026-03-09 23:30:00', 'paid', 'jane', '{"plan":"free","amount":20}'),
      event('acme', '2026-03-10 08:00:00', 'paid', "o\\'hara\\\\", '{"plan":"pro","amount":1}'),
      ...gone.map((user) => event('acme', '2026-03-02 08:00:00', `deleted-${SECRET}`, user, secret)),
      event('acme', '2020-01-01 00:00:00', `expired-${SECRET}`, 'jane', secret),
      event('o.ther', '2026-03-02 08:00:00', `foreign-${SECRET}`, 'foreign-user', secret),
    ].join(', ')}`,
    `${EVENTS} SELECT 'acme', toDateTime64('2026-03-20 00:00:00', 3, 'UTC') + number / 1000, now64(6), generateUUIDv4(),
      'many', 'track', concat('user-', toString(number % 1000)), '', concat('{"n":', toString(number), '}') FROM numbers(${many})`,
    `INSERT INTO entities (workspace_id, kind, id, other_id, first_seen_at, last_seen_at, version) VALUES ${[
      ...['jane', ...gone].flatMap((user) => [
        entity('acme', 'user', user, ''),
        entity('acme', 'membership', user, 'org'),
        entity('acme', 'member', 'org', user),
      ]),
      entity('acme', 'organization', 'org', ''),
      entity('o.ther', 'user', 'foreign-user', ''),
      entity('o.ther', 'organization', 'foreign-org', ''),
      entity('o.ther', 'membership', 'foreign-user', 'foreign-org'),
    ].join(', ')}`,
    `INSERT INTO entity_properties (workspace_id, kind, id, property, register) VALUES ${[
      property('acme', 'user', 'jane', 'name', 'Jane'),
      property('acme', 'organization', 'org', 'plan', 'pro'),
      ...gone.map((user) => property('acme', 'user', user, 'name', SECRET)),
      property('o.ther', 'user', 'foreign-user', 'name', SECRET),
      property('o.ther', 'organization', 'foreign-org', 'name', SECRET),
    ].join(', ')}`,
    `INSERT INTO identity_links (workspace_id, anonymous_id, user_id, version, said) VALUES ${[
      "('acme', 'phone', 'jane', 1000, 0)",
      ...gone.map((user) => `('acme', 'visitor-${SECRET}', '${user}', 1000, 0)`),
      `('o.ther', 'visitor-${SECRET}', 'foreign-user', 1000, 0)`,
    ].join(', ')}`,
    `INSERT INTO pending_deletions (workspace_id, user_id, version, stored_at) SELECT 'acme', arrayJoin(['${gone.join("', '")}']),
      toUnixTimestamp64Micro(now64(6)), now64(3)`,
    `INSERT INTO pending_deletions (workspace_id, user_id, version, stored_at) VALUES ('o.ther', 'foreign-gone', 1, now64(3))`,
    `INSERT INTO retention (workspace_id, days) VALUES ('', 36500), ('acme', 1000), ('o.ther', 7)`,
  ];
}

const JDBC = 'clickhouse-jdbc-0.10.0';
/** It is the one that Metabase has, and sends more settings. */
const JDBC_OF_METABASE = 'clickhouse-jdbc-0.8.6';
const PYTHON = 'clickhouse-connect-1.12.0';
const PROGRAMS = join(import.meta.dirname, 'programs');

/** What a driver made of a statement: its rows, and the values of the first of them; or the error. */
export type StatementOutcome =
  | { readonly rows: number; readonly first: string; readonly error?: undefined }
  | { readonly error: string; readonly rows?: undefined; readonly first?: undefined };

/** What a program of a driver prints. */
export interface DriverResult {
  readonly schemas: unknown;
  readonly tables: unknown;
  readonly columns: readonly (readonly string[])[];
  readonly values: unknown;
  readonly prepared: unknown;
  readonly zone: unknown;
  /** Whether what only this driver has works. */
  readonly own: unknown;
  readonly statements: readonly StatementOutcome[];
}

const jdbc = (jars: string) => ({
  command: [...javaOf(jars), join(PROGRAMS, 'ClickHouseJdbc.java')],
  address: /^jdbc:clickhouse:.*$/m,
});

/** How the programs of the drivers are started, with what docs/guide/bi.md has for each. */
const DRIVERS = {
  JDBC: jdbc(JDBC),
  'JDBC of Metabase': jdbc(JDBC_OF_METABASE),
  'clickhouse-connect': {
    command: [pythonOf(PYTHON), join(PROGRAMS, 'clickhouse_tools.py')],
    address: /^clickhousedb:.*$/m,
  },
} as const;

export type Driver = keyof typeof DRIVERS;

let areAllRun = false;

/** Has tests run each version of a driver from now on, and not the newest one alone. */
export function runAllDrivers(): void {
  areAllRun = true;
}

/** Returns the drivers that tests run. */
export function driversToRun(): readonly Driver[] {
  return areAllRun ? ['JDBC', 'JDBC of Metabase', 'clickhouse-connect'] : ['JDBC', 'clickhouse-connect'];
}

/**
 * Runs the program of a driver as the account of `acme`.
 *
 * @param guide the text of docs/guide/bi.md, which has the address that a tool gets
 */
export async function runDriver(
  driver: Driver,
  { clickhouse, acme }: ToolsWorld,
  guide: string,
  statements: readonly string[],
): Promise<DriverResult> {
  const { command, address } = DRIVERS[driver];
  const [shown = ''] = address.exec(guide) ?? [];
  const url = shown
    .replace('clickhouse.example.com:8123', new URL(clickhouse.url).host)
    .replace('PASSWORD', encodeURIComponent(acme.password));
  const [program = '', ...args] = command;
  // Nothing else of the environment: a proxy of the machine must not come between.
  const env = { PATH: process.env['PATH'], LC_ALL: 'C.UTF-8' };
  const child = spawn(program, [...args, url, acme.account, acme.password], { env });
  child.stdin.end(statements.map((statement) => `${statement}\0`).join(''));
  const [output, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  if (code !== 0) throw new Error(`${driver} failed: ${errors}\n${output}`);
  return JSON.parse(output.trimEnd().split('\n').at(-1) ?? '') as DriverResult;
}
