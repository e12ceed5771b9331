import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AccountOptions } from '@sluice/local-stack/clickhouse-accounts';
import { commandLineOf } from '@sluice/local-stack/command-line';
import { systemErrorCode } from '@sluice/local-stack/errors';
import { changeKeysFile, generateKey, hashKey, type KeyEntry, SCOPES } from '@sluice/shared/keys/keys-file';

/**
 * Locks the data folder for this process, and creates it if it is missing. A lock that a killed process left is taken
 * over, also when another program has its process id now.
 *
 * @param mark a text that the command line of every run contains
 * @returns `undefined`, or the id of the process that holds the lock
 */
export async function lockDataFolder(dataDir: string, mark: string): Promise<number | undefined> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const file = lockFile(dataDir);
  for (;;) {
    try {
      await writeFile(file, `${process.pid}\n`, { flag: 'wx' });
      return undefined;
    } catch (error) {
      if (systemErrorCode(error) !== 'EEXIST') throw error;
    }
    const holder = Number(await readFile(file, 'utf8').catch(() => ''));
    if (holder > 0 && (await commandLineOf(holder))?.includes(mark)) return holder;
    await rm(file, { force: true });
  }
}

/** Removes the lock. */
export async function unlockDataFolder(dataDir: string): Promise<void> {
  await rm(lockFile(dataDir), { force: true });
}

function lockFile(dataDir: string): string {
  return join(dataDir, 'lock');
}

/** Reads a secret that only the owner of the file may read, and creates it if it is missing. */
async function ensureSecret(file: string, create: () => string): Promise<string> {
  const kept = await readFile(file, 'utf8').catch(() => '');
  if (kept.trim()) return kept.trim();
  const secret = create();
  await writeFile(file, `${secret}\n`, { mode: 0o600 });
  return secret;
}

/** The passwords of the local ClickHouse. Without them, any web page could send it statements. */
export interface ClickHousePasswords {
  /** The password of the administrator `sluice`. */
  readonly administrator: string;
  /** The passwords of the services' accounts. */
  readonly accounts: AccountOptions['passwords'];
  /** The password of the account for SQL of clients. */
  readonly sql: string;
}

/** Reads the passwords, and creates those that are missing. */
export async function ensureClickHousePasswords(dataDir: string): Promise<ClickHousePasswords> {
  const ensure = (file: string) => ensureSecret(join(dataDir, file), () => randomBytes(24).toString('base64url'));
  return {
    administrator: await ensure('clickhouse-password'),
    accounts: {
      sluice_migrate: await ensure('clickhouse-migrate-password'),
      sluice_writer: await ensure('clickhouse-writer-password'),
      sluice_query: await ensure('clickhouse-query-password'),
      sluice_webhooks: await ensure('clickhouse-webhooks-password'),
    },
    sql: await ensure('clickhouse-sql-password'),
  };
}

/**
 * Makes sure that the keys file has the development key as its entry `dev` (workspace `local`, every scope). Other
 * entries stay as they are.
 *
 * @param chosen the key to use; default: the one of the data folder, created at the first start
 * @throws KeysFileError when the file is malformed
 */
export async function ensureDevKey(
  dataDir: string,
  chosen: string | undefined,
): Promise<{ readonly key: string; readonly keysFile: string }> {
  const key = chosen ?? (await ensureSecret(join(dataDir, 'dev-key'), generateKey));
  const keysFile = join(dataDir, 'keys.json');
  const hash = hashKey(key);
  await changeKeysFile(keysFile, (entries) => {
    const hasScopes = (entry: KeyEntry) => SCOPES.every((scope) => entry.scopes.includes(scope));
    if (entries.some((entry) => entry.id === 'dev' && entry.hash === hash && hasScopes(entry))) return entries;
    const others = entries.filter((entry) => entry.id !== 'dev' && entry.hash !== hash);
    const dev = { id: 'dev', hash, workspace: 'local', scopes: [...SCOPES], createdAt: new Date().toISOString() };
    return [...others, dev];
  });
  return { key, keysFile };
}
