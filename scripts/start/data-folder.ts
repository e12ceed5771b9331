import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { commandLineOf } from '@sluice/local-stack/command-line';
import { systemErrorCode } from '@sluice/local-stack/errors';
import { changeKeysFile, generateKey, hashKey, SCOPES } from '@sluice/shared/keys/keys-file';

/**
 * Takes the data folder, which is made when missing, for this process.
 *
 * @param mark what the command line of every run holds: a lock left by a killed process is taken over, also when its
 * process id belongs to another program now.
 * @returns undefined, or the id of the process that has the folder.
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

/** Gives the folder back. */
export async function unlockDataFolder(dataDir: string): Promise<void> {
  await rm(lockFile(dataDir), { force: true });
}

function lockFile(dataDir: string): string {
  return join(dataDir, 'lock');
}

/** A secret kept in the data folder, readable by its owner only; made when missing. */
async function keepSecret(file: string, make: () => string): Promise<string> {
  const kept = await readFile(file, 'utf8').catch(() => '');
  if (kept.trim()) return kept.trim();
  const secret = make();
  await writeFile(file, `${secret}\n`, { mode: 0o600 });
  return secret;
}

/** The local ClickHouse's password, made at the first start: without one, any web page could send it statements. */
export async function keepClickHousePassword(dataDir: string): Promise<string> {
  return keepSecret(join(dataDir, 'clickhouse-password'), () => randomBytes(24).toString('base64url'));
}

/**
 * Makes sure that the keys file has the development key as its entry `dev` (workspace `local`, every scope), and
 * leaves all other entries alone.
 *
 * @param chosen the key to use; undefined: the kept one, made at the first start.
 * @throws KeysFileError when the file cannot be understood.
 */
export async function keepDevKey(
  dataDir: string,
  chosen: string | undefined,
): Promise<{ readonly key: string; readonly keysFile: string }> {
  const key = chosen ?? (await keepSecret(join(dataDir, 'dev-key'), generateKey));
  const keysFile = join(dataDir, 'keys.json');
  const hash = hashKey(key);
  await changeKeysFile(keysFile, (entries) => {
    if (entries.some((entry) => entry.id === 'dev' && entry.hash === hash)) return entries;
    const others = entries.filter((entry) => entry.id !== 'dev' && entry.hash !== hash);
    const dev = { id: 'dev', hash, workspace: 'local', scopes: [...SCOPES], createdAt: new Date().toISOString() };
    return [...others, dev];
  });
  return { key, keysFile };
}
