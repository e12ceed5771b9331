import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseBackupLocation } from '@sluice/cli/backup/backup-location';
import { backupConfig } from '@sluice/cli/backup/config';
import { clientOf } from '@sluice/cli/backup/connect';
import { runBackup } from '@sluice/cli/backup/run-backup';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { loadConfig } from '@sluice/shared/config';
import { inherited } from '@sluice/shared/testing/inherited';
import { programFile } from '@sluice/shared/testing/program-file';
import { expect, inject } from 'vitest';
import { readClickHouse } from './clickhouse.ts';
import { ownClickHouse } from './engines.ts';
import { type Pipeline, startPipeline } from './pipeline.ts';

export interface CommandEnd {
  readonly code: number;
  /** Standard output and standard error. */
  readonly output: string;
}

/** The account of a restore: those of the services may not replace a database. */
export const RESTORE_ACCOUNT = { CLICKHOUSE_MIGRATE_USER: 'default', CLICKHOUSE_MIGRATE_PASSWORD: '' } as const;

/**
 * Returns a file of users.d with an account that has the rights for a restore that the page lists.
 *
 * @param account.lacks the first right of a line, which it does not have. Default: it has all
 */
export async function restoreAccountXml(
  database: string,
  { name, password, lacks = '' }: { readonly name: string; readonly password: string; readonly lacks?: string },
): Promise<string> {
  const page = await readFile(new URL('../../docs/operate/backup.md', import.meta.url), 'utf8');
  const grants = (page.match(/(?<=^ +)GRANT .*(?= TO sluice_restore;$)/gm) ?? []).map((grant) =>
    grant.replace(/\bON sluice/, `ON ${database}`).replace(`GRANT ${lacks}, `, 'GRANT '),
  );
  const queries = grants.map((grant) => `<query>${grant}</query>`).join('');
  return `<clickhouse><users><${name}>
    <password>${password}</password><profile>account</profile><quota>default</quota>
    <networks><ip>127.0.0.1</ip></networks><grants>${queries}</grants>
  </${name}></users></clickhouse>`;
}

/** Runs `sluice` as an operator does, as a process of its own with the environment of a pipeline's services. */
export function sluice(
  pipeline: Pick<Pipeline, 'environment'>,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<CommandEnd> {
  return new Promise((resolve) => {
    const options = { env: { ...inherited(), ...pipeline.environment, ...env } };
    execFile(process.execPath, [programFile('sluice'), ...args], options, (error, stdout, stderr) => {
      resolve({ code: error ? Number(error.code) : 0, output: `${stdout}${stderr}` });
    });
  });
}

/** As {@link sluice}, as a process that may be killed. */
export function startSluice({ environment }: Pick<Pipeline, 'environment'>, args: readonly string[]) {
  const child = spawn(process.execPath, [programFile('sluice'), ...args], {
    env: { ...inherited(), ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
  }
  const ended = once(child, 'close').then(([code]): CommandEnd => ({ code: Number(code), output }));
  return { child, ended };
}

/** Makes a backup, and calls `before` before ClickHouse begins with each part: 0, 1 and 2. */
export async function backUp(
  { environment }: Pick<Pipeline, 'environment'>,
  to: string,
  before: (part: number) => Promise<unknown>,
  { signal = new AbortController().signal, bytesPerSecond = 0 } = {},
): Promise<void> {
  const config = loadConfig(backupConfig, environment);
  await using cleanup = new AsyncDisposableStack();
  const client = clientOf(config, 'test', config.CLICKHOUSE_DATABASE);
  cleanup.defer(() => client.close());
  let part = 0;
  const hooked: typeof client = Object.assign(Object.create(client), {
    query: async (...args: Parameters<typeof client.query>) => {
      if (!args[0].query.startsWith('BACKUP')) return await client.query(...args);
      await before(part);
      part += 1;
      const clickhouse_settings = { max_backup_bandwidth: String(bytesPerSecond) };
      return await client.query({ ...args[0], clickhouse_settings });
    },
  });
  const location = parseBackupLocation('--to', to, config, '/');
  await runBackup({
    client: hooked,
    groupId: config.KAFKA_GROUP_ID,
    location,
    signal,
    onProgress: () => {},
    onWait: () => {},
  });
}

/** A pipeline with a ClickHouse of its own that may write backups, and 500 events of the user `ann`. */
export interface BackedUp extends AsyncDisposable {
  readonly running: Pipeline;
  /** Returns the path of a backup. */
  place(name: string): string;
  /** @param database default: that of the pipeline */
  read(sql: string, database?: string): Promise<string>;
  /** Submits events of a user, and waits until they are stored. */
  submit(count: number, user: string): Promise<void>;
  /** The whole database, and whether a restore has left another one. */
  contents(): Promise<string>;
}

export async function startBackedUp(name: string): Promise<BackedUp> {
  await using started = new AsyncDisposableStack();
  const { path: backupDir } = started.use(await makeTempDir());
  const { url: clickhouseUrl } = started.use(await ownClickHouse({ backupDir }));
  const running = started.use(await startPipeline({ kafkaBrokers: inject('kafkaBrokers'), clickhouseUrl, name }));
  const submit = async (count: number, user: string) => {
    const events = Array.from({ length: count }, () => ({ event: 'e' }));
    expect((await running.submit({ foreignUserGroupId: 'g', foreignUserId: user, events })).status).toBe(202);
    await running.drained();
  };
  const read = (sql: string, database = running.database) => readClickHouse(clickhouseUrl, sql, { database });
  const contents = async () => {
    const events = await read('SELECT uuid, user_id FROM events ORDER BY ALL FORMAT TSV');
    const positions = await read(
      'SELECT topic, partition, next_offset FROM writer_positions FINAL ORDER BY ALL FORMAT TSV',
    );
    const databases = await read("SELECT name FROM system.databases WHERE name LIKE 'test_%' ORDER BY ALL FORMAT TSV");
    return `${events}\n${positions}\n${databases}`;
  };
  await submit(500, 'ann');
  const kept = started.move();
  return {
    ...{ running, submit, read, contents },
    place: (backup) => join(backupDir, backup),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}
