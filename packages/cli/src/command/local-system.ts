import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Environment } from './command.ts';

const root = join(import.meta.dirname, '../../../..');

/** Accounts of the local ClickHouse that may change tables, and the administrator, each with the file of its password. */
const MIGRATE_PASSWORD_FILES = {
  sluice_migrate: 'clickhouse-migrate-password',
  sluice: 'clickhouse-password',
} as const;

/** Returns the data folder of the system that npm start runs in this checkout. */
export function dataFolder(env: Environment): string {
  return resolve(root, env['SLUICE_DATA_DIR'] || '.sluice');
}

/** Returns a secret that npm start keeps in its data folder, without the line end; empty when there is none. */
export async function readSecret(
  env: Environment,
  file: 'dev-key' | 'clickhouse-password' | 'clickhouse-writer-password' | 'clickhouse-migrate-password',
): Promise<string> {
  return (await readFile(join(dataFolder(env), file), 'utf8').catch(() => '')).trim();
}

/**
 * Returns the environment with the addresses and accounts of the system that npm start runs, unless it names others, also in
 * a file of servers.
 *
 * @param migrateAccount who changes tables. Default: the account for migrations
 */
export async function withLocalSystem(
  env: Environment,
  migrateAccount: keyof typeof MIGRATE_PASSWORD_FILES = 'sluice_migrate',
): Promise<Environment> {
  const kafka = { KAFKA_BROKERS: env['KAFKA_BROKERS'] || `127.0.0.1:${env['KAFKA_PORT'] || 4092}` };
  if (env['CLICKHOUSE_URL'] || env['CLICKHOUSE_SERVERS_FILE']) return { ...env, ...kafka };
  return {
    ...env,
    ...kafka,
    CLICKHOUSE_URL: `http://127.0.0.1:${env['CLICKHOUSE_PORT'] || 4123}`,
    CLICKHOUSE_USER: 'sluice_writer',
    CLICKHOUSE_PASSWORD_FILE: '',
    CLICKHOUSE_PASSWORD: await readSecret(env, 'clickhouse-writer-password'),
    CLICKHOUSE_MIGRATE_USER: migrateAccount,
    CLICKHOUSE_MIGRATE_PASSWORD_FILE: '',
    CLICKHOUSE_MIGRATE_PASSWORD: await readSecret(env, MIGRATE_PASSWORD_FILES[migrateAccount]),
  };
}
