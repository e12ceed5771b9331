import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { LockTimeout, withFileLock } from './file-lock.ts';

export const SCOPES = ['ingest', 'query', 'delete', 'sql', 'webhooks'] as const;
export type Scope = (typeof SCOPES)[number];

export const workspaceName = z
  .string()
  .regex(/^[A-Za-z0-9._-]{1,100}$/, 'must be 1 to 100 letters, digits, dots, underscores or hyphens');

/** The rate of a key, per second: events for ingest-api, each request at least one; requests for query-api. */
export const rateLimit = z.int('must be a whole number').min(1, 'must be at least 1');

const keyEntry = z.strictObject({
  id: z.string().min(1),
  hash: z.string().regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in hex'),
  workspace: workspaceName,
  scopes: z.array(z.enum(SCOPES)).min(1),
  createdAt: z.string().optional(),
  rateLimit: rateLimit.optional(),
});

const keysFile = z
  .strictObject({ keys: z.array(keyEntry) })
  .refine(({ keys }) => new Set(keys.map(({ hash }) => hash)).size === keys.length, 'two entries have the same hash');

/** An API key as the file holds it: its hash, never the key itself. */
export type KeyEntry = z.output<typeof keyEntry>;

/** A keys file cannot be read, cannot be written or is not valid. */
export class KeysFileError extends Error {
  override readonly name = 'KeysFileError';
}

/** Returns the SHA-256 of a key, in hex. Keys are long random strings, so a fast hash is enough. */
export function hashKey(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

/** Creates a key: `sk_` and 32 random bytes in base64url. */
export function generateKey(): string {
  return `sk_${randomBytes(32).toString('base64url')}`;
}

/** @throws {KeysFileError} naming every error */
export function parseKeysFile(text: string): readonly KeyEntry[] {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    throw new KeysFileError('is not JSON');
  }
  const result = keysFile.safeParse(content);
  if (result.success) return result.data.keys;
  throw new KeysFileError(
    result.error.issues.map(({ path, message }) => `${path.join('.') || 'file'}: ${message}`).join('; '),
  );
}

/**
 * Reads the keys of a file; none when the file does not exist.
 *
 * @throws {KeysFileError} when it cannot be read or is not valid
 */
export async function readKeysFile(path: string): Promise<readonly KeyEntry[]> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw new KeysFileError(`cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
  return parseKeysFile(text);
}

/**
 * Changes the file. One process does so at a time, so that no change is lost. When it throws, the file stays as it is.
 *
 * @param change returns the new keys
 * @throws {KeysFileError} when the file cannot be read or written, or is not valid
 * @throws what `change` throws
 */
export async function changeKeysFile(
  path: string,
  change: (keys: readonly KeyEntry[]) => readonly KeyEntry[],
): Promise<void> {
  try {
    await withFileLock(path, async () => {
      const keys = await readKeysFile(path);
      const changed = change(keys);
      if (changed !== keys) await writeKeysFile(path, changed);
    });
  } catch (error) {
    if (error instanceof LockTimeout) {
      throw new KeysFileError(`is being changed by another command; if none runs, remove ${path}.lock`);
    }
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    throw new KeysFileError(`cannot be written (${code})`);
  }
}

/** Replaces the file in one step. Only its owner can read it. */
export async function writeKeysFile(path: string, keys: readonly KeyEntry[]): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const temporary = `${path}.${process.pid}.tmp`;
  await writeFile(temporary, `${JSON.stringify({ keys }, null, 2)}\n`, { mode: 0o600 });
  await rename(temporary, path);
}
