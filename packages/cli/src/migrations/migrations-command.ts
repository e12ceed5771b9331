import { setTimeout as delay } from 'node:timers/promises';
import { connectionHint, withHint } from '@sluice/shared/base/connection-hints';
import { createLogger } from '@sluice/shared/base/log';
import { type ClickHouseClient, createClickHouse } from '@sluice/shared/clickhouse/client';
import {
  MigrationMismatch,
  migrate,
  migrateAccount,
  readMigrations,
  recordedOrNone,
  SchemaTooNew,
  TablesLost,
  unknownNames,
} from '@sluice/shared/clickhouse/migrate';
import { migrateReplicas } from '@sluice/shared/clickhouse/migrate-replicas';
import { type ClickHouseConfig, clickHouseEnv } from '@sluice/shared/config';
import { serverEnv } from '@sluice/shared/servers/server-config';
import { printable } from '@sluice/shared/text/printable';
import { z } from 'zod';
import type { Command } from '../command/command.ts';
import { withLocalSystem } from '../command/local-system.ts';
import { parseCommand } from '../command/parse-command.ts';
import { loadServersOf } from '../servers/chosen-server.ts';

const APPLICATION = 'sluice-migrations-command';

/** How often `--wait` looks, in milliseconds. */
const WAIT_MS = 2_000;

/** What trying again does not resolve. */
const REFUSALS = [MigrationMismatch, SchemaTooNew, TablesLost];

/** Shows and applies the migrations of the database, and what ClickHouse does for them in the background. */
export const migrationsCommand: Command = {
  help,
  async run(args, { env }) {
    const { command, flags, texts } = parseCommand(args, {
      commands: { status: 'none', apply: 'none' },
      texts: { server: '' },
      flags: ['wait'],
      usage: 'Use status or apply, each with or without --wait and --server.',
    });
    const schema = z.object({ ...clickHouseEnv, ...serverEnv });
    const local = await withLocalSystem(env);
    const servers = loadServersOf(schema, local, texts.server);
    let code = 0;
    for (const { config, server, replicas } of servers) {
      if (servers.length > 1) console.log(`server ${server?.name}`);
      const configs = replicas?.map(({ url }) => ({ ...config, CLICKHOUSE_URL: url }));
      code = Math.max(code, await runOn(config, command, { wait: flags.wait, replicas: configs }));
    }
    return code;
  },
};

/** Runs the command on one ClickHouse server, and returns the exit code. */
async function runOn(
  config: ClickHouseConfig,
  command: 'status' | 'apply',
  { wait, replicas }: { readonly wait: boolean; readonly replicas: readonly ClickHouseConfig[] | undefined },
): Promise<number> {
  const options = { application: APPLICATION, requestTimeoutMs: 60_000, connectionsMax: 1 };
  await using client = createClickHouse(migrateAccount(config), options);
  try {
    if (command === 'apply') await apply(config, replicas);
    const complete = await printStatus(client);
    return (await printBackgroundWork(client, wait)) && complete ? 0 : 1;
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    const reason = message || code || '';
    const isRefused = REFUSALS.some((type) => error instanceof type);
    console.error(
      isRefused
        ? `Nothing is done: ${reason}.`
        : `ClickHouse did not do it: ${printable(withHint(reason, connectionHint(error)))}`,
    );
    return 1;
  }
}

function help(name: string): string {
  return `Usage: ${name} COMMAND [--wait] [--server NAME]

Shows and applies the migrations of the database. Services apply what is missing when they start; apply it before an
upgrade to watch it, or to give the services accounts that may not change tables.

  status      shows which migrations are applied, and what ClickHouse does for them in the background
  apply       applies those that are missing, and shows the same. Services may run meanwhile
  --wait      waits until nothing is left to do in the background, and tells its progress
  --server NAME
              of one ClickHouse server only. Default: of each in CLICKHOUSE_SERVERS_FILE, one after the other

Exit codes: 0 nothing is missing or failing, 1 something is, or ClickHouse cannot be reached, 2 wrong arguments.`;
}

/** Of replicas, all are brought to the same: none of them can be changed alone. */
async function apply(config: ClickHouseConfig, replicas: readonly ClickHouseConfig[] | undefined): Promise<void> {
  const logger = createLogger(APPLICATION, 'error');
  const numbers = await (replicas ? migrateReplicas(replicas, logger) : migrate(config, logger));
  console.log(numbers.length === 0 ? 'no migration was missing' : `applied ${count(numbers.length, 'migration')}`);
}

/** Prints which migrations the database has, and returns whether it has all that this version knows. */
async function printStatus(client: ClickHouseClient): Promise<boolean> {
  const [wanted, applied = new Map()] = await Promise.all([readMigrations(), recordedOrNone(client)]);
  for (const { number, name } of wanted) {
    const at = applied.get(number)?.appliedAt;
    console.log(`${name.padEnd(44)} ${at === undefined ? 'missing' : `applied ${timeOf(at)}`}`);
  }
  for (const name of unknownNames(wanted, applied)) console.log(`${name.padEnd(44)} of a newer version`);
  const missing = wanted.filter(({ number }) => !applied.has(number)).length;
  console.log(missing === 0 ? 'no migration is missing' : `missing: ${count(missing, 'migration')}`);
  return missing === 0;
}

/** Prints what ClickHouse does in the background, and returns whether nothing of it fails. */
async function printBackgroundWork(client: ClickHouseClient, wait: boolean): Promise<boolean> {
  for (;;) {
    const works = await readBackgroundWork(client);
    if (works.length === 0) console.log('nothing is left to do in the background');
    for (const work of works) console.log(describe(work));
    if (works.length === 0 || !wait) return works.every(({ failure }) => failure === '');
    await delay(WAIT_MS);
  }
}

function describe({ table, command, partsToDo, seconds, progress, failure }: BackgroundWork): string {
  const now = progress > 0 ? `, ${Math.floor(progress * 100)} % of those under way` : '';
  const failing = failure === '' ? '' : `; it fails and is repeated: ${failure}`;
  return `in the background: ${table}: ${command}: ${count(partsToDo, 'part')} to do${now}, for ${seconds} s${failing}`;
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

function timeOf(seconds: number): string {
  return new Date(seconds * 1_000).toISOString().replace('.000Z', 'Z');
}

/** A mutation of a table that ClickHouse carries out in the background, part by part. */
interface BackgroundWork {
  readonly table: string;
  /** What it does, such as `MATERIALIZE PROJECTION by_hour`. */
  readonly command: string;
  readonly partsToDo: number;
  /** Seconds since it began. */
  readonly seconds: number;
  /** How much of the parts that are rewritten now is done, from 0 to 1. */
  readonly progress: number;
  /** The newest error; empty while it does not fail. ClickHouse repeats it until it succeeds. */
  readonly failure: string;
}

/** Returns what ClickHouse does in the background for the tables of the database, the oldest first. */
async function readBackgroundWork(client: ClickHouseClient): Promise<readonly BackgroundWork[]> {
  const result = await client.query({
    query: `SELECT
      m.table AS table,
      m.command AS command,
      toUInt32(m.parts_to_do) AS partsToDo,
      toUInt32(now() - m.create_time) AS seconds,
      g.progress AS progress,
      m.latest_fail_reason AS failure
    FROM system.mutations AS m
    LEFT JOIN (
      SELECT table, avg(progress) AS progress FROM system.merges
      WHERE database = currentDatabase() AND is_mutation GROUP BY table
    ) AS g ON g.table = m.table
    WHERE m.database = currentDatabase() AND NOT m.is_done
    ORDER BY m.create_time, m.table, m.command`,
    format: 'JSONEachRow',
  });
  return await result.json<BackgroundWork>();
}
