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

/** What a key is for, as a person calls it. It is printed in terminals, so it has no control or formatting characters. */
export const keyName = z
  .string()
  .regex(/^\P{C}{1,100}$/u, 'must be 1 to 100 characters, none of them a control or formatting character');

const keyEntry = z.strictObject({
  id: z.string().min(1),
  name: keyName.optional(),
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
  /** The code of the system's error with which writing failed, such as `EROFS`; undefined when it was not that. */
  readonly writeCode: string | undefined;

  constructor(message: string, writeCode?: string) {
    super(message);
    this.writeCode = writeCode;
  }
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
    throw new KeysFileError(`cannot be written (${code})`, code);
  }
}

/** A change that waits for the file. */
interface WaitingChange {
  readonly change: (content: KeysFileContent) => KeysFileContent;
  readonly done: PromiseWithResolvers<void>;
}

/**
 * The changes of a process that makes many. Those that wait for the file are made together, in their order and with one write: none
 * waits until its turn among many others comes, as a revocation must not.
 */
export class KeysFileChanges {
  readonly #path: string;
  #waiting: WaitingChange[] = [];
  #running: Promise<void> | undefined;

  /** @param path of the keys file */
  constructor(path: string) {
    this.#path = path;
  }

  /** Changes the file as {@link changeKeysFileContent} does, and throws as that does. What throws changes nothing. */
  async make(change: WaitingChange['change']): Promise<void> {
    const done = Promise.withResolvers<void>();
    this.#waiting.push({ change, done });
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
    await done.promise;
  }

  async #run(): Promise<void> {
    while (this.#waiting.length > 0) {
      let begun: readonly WaitingChange[] = [];
      try {
        await changeKeysFileContent(this.#path, (content) => {
          begun = this.#take();
          return begun.reduce(changedBy, content);
        });
        for (const { done } of begun) done.resolve();
      } catch (error) {
        // Changes that came since would wait as long for the same.
        for (const { done } of [...begun, ...this.#take()]) done.reject(error);
      }
    }
  }

  #take(): readonly WaitingChange[] {
    const taken = this.#waiting;
    this.#waiting = [];
    return taken;
  }
}

function changedBy(content: KeysFileContent, { change, done }: WaitingChange): KeysFileContent {
  try {
    return change(content);
  } catch (error) {
    done.reject(error);
    return content;
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
