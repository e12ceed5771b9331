import { createHash, randomBytes } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { LockTimeout, withFileLock } from './file-lock.ts';

export const SCOPES = ['ingest', 'query', 'delete', 'sql', 'webhooks', 'admin'] as const;
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

/** What trench-api knows of a workspace that was created there; it decides nothing elsewhere. */
const workspaceEntry = z.strictObject({
  id: z.string().min(1),
  name: z.string().min(1),
  /** The workspace of the keys and the events. */
  workspace: workspaceName,
  isDefault: z.boolean(),
  createdAt: z.string(),
  properties: z.record(z.string(), z.unknown()).optional(),
});

const keysFile = z
  .strictObject({ keys: z.array(keyEntry), workspaces: z.array(workspaceEntry).optional() })
  .refine(({ keys }) => new Set(keys.map(({ hash }) => hash)).size === keys.length, 'two entries have the same hash');

/** An API key as the file holds it: its hash, never the key itself. */
export type KeyEntry = z.output<typeof keyEntry>;

/** A workspace that trench-api created. */
export type WorkspaceEntry = z.output<typeof workspaceEntry>;

/** What a keys file holds. */
export interface KeysFileContent {
  readonly keys: readonly KeyEntry[];
  readonly workspaces: readonly WorkspaceEntry[];
}

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

/** Creates a key, and its entry for the file. */
export function createKey(fields: Omit<KeyEntry, 'id' | 'hash'>): { readonly key: string; readonly entry: KeyEntry } {
  const key = generateKey();
  return { key, entry: { id: randomBytes(6).toString('hex'), hash: hashKey(key), ...fields } };
}

/** @throws {KeysFileError} naming every error */
export function parseKeysFile(text: string): readonly KeyEntry[] {
  return parseContent(text).keys;
}

function parseContent(text: string): KeysFileContent {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    throw new KeysFileError('is not JSON');
  }
  const result = keysFile.safeParse(content);
  if (result.success) return { keys: result.data.keys, workspaces: result.data.workspaces ?? [] };
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
  return (await readKeysFileContent(path)).keys;
}

/**
 * Reads keys and workspaces; none when the file does not exist.
 *
 * @throws {KeysFileError} when it cannot be read or is not valid
 */
export async function readKeysFileContent(path: string): Promise<KeysFileContent> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { keys: [], workspaces: [] };
    throw new KeysFileError(`cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
  return parseContent(text);
}

/**
 * Changes the keys of the file; its workspaces stay as they are.
 *
 * @param change returns the new keys
 * @throws as {@link changeKeysFileContent} does
 */
export async function changeKeysFile(
  path: string,
  change: (keys: readonly KeyEntry[]) => readonly KeyEntry[],
): Promise<void> {
  await changeKeysFileContent(path, (content) => {
    const keys = change(content.keys);
    return keys === content.keys ? content : { ...content, keys };
  });
}

/**
 * Changes the file. One process does so at a time, so that no change is lost. When it throws, the file stays as it is.
 *
 * @param change returns the new content
 * @throws {KeysFileError} when the file cannot be read or written, or is not valid
 * @throws what `change` throws
 */
export async function changeKeysFileContent(
  path: string,
  change: (content: KeysFileContent) => KeysFileContent,
): Promise<void> {
  try {
    await withFileLock(path, async () => {
      const content = await readKeysFileContent(path);
      const changed = change(content);
      if (changed !== content) await writeContent(path, changed);
    });
  } catch (error) {
    if (error instanceof LockTimeout) {
      throw new KeysFileError(`is being changed by another command; if none runs, remove ${path}.lock`);
    }
    const { code, errno } = error as NodeJS.ErrnoException;
    // Other errors may have a code as well.
    if (errno === undefined) throw error;
    throw new KeysFileError(`cannot be written (${code})`);
  }
}

/** Replaces the file in one step by one with these keys and no workspaces. Only its owner can read it. */
export async function writeKeysFile(path: string, keys: readonly KeyEntry[]): Promise<void> {
  await writeContent(path, { keys, workspaces: [] });
}

async function writeContent(path: string, { keys, workspaces }: KeysFileContent): Promise<void> {
  // Without workspaces the file is as older versions know it.
  const content = workspaces.length === 0 ? { keys } : { keys, workspaces };
  await mkdir(dirname(path), { recursive: true });
  const temporary = `${path}.${process.pid}.tmp`;
  await writeFile(temporary, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
  await rename(temporary, path);
}
