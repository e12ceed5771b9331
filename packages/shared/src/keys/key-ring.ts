import { hash, timingSafeEqual } from 'node:crypto';
import { type StatsListener, unwatchFile, watchFile } from 'node:fs';
import { open } from 'node:fs/promises';
import type { Component } from '../lifecycle.ts';
import type { Logger } from '../log.ts';
import { type KeyEntry, parseKeysFile } from './keys-file.ts';
import { TokenBucket } from './token-bucket.ts';

/** How often the file is checked, in milliseconds. Polling notices every change, also a mounted secret's new link. */
const POLL_INTERVAL_MS = 500;

/** A key with the bucket that holds it to its rate. The bucket outlives changes of the file. */
export interface ApiKey extends KeyEntry {
  readonly bucket: TokenBucket;
}

/** The keys that a service accepts. */
export interface KeyRing extends Component {
  /** Whether a valid file has been read since the start. Until then no key can be checked. */
  readonly loaded: boolean;
  /** Returns the key, or `undefined` when it is not known. */
  find(key: string): ApiKey | undefined;
}

/** Returns why no key can be checked, for `/readyz`; empty once a valid file has been read. */
export function missingKeys({ loaded }: Pick<KeyRing, 'loaded'>): readonly string[] {
  return loaded ? [] : ['the keys file cannot be used'];
}

/** How a key ring's file is. */
export interface KeysFileState {
  /** When the content that is in force was written, in milliseconds since 1970; `undefined` before a valid one was read. */
  readonly modifiedMs: number | undefined;
  /** Whether the file could be used when it was last read. */
  readonly isValid: boolean;
}

interface Known {
  readonly key: ApiKey;
  readonly hash: Buffer;
}

/**
 * A key ring that follows a keys file: a change is in force within a second. When the file is broken or missing, the last
 * valid keys stay in force, the log says so, and the file is read again until it is valid.
 */
export class FileKeyRing implements KeyRing {
  readonly name = 'API keys';
  readonly #path: string;
  readonly #logger: Logger;
  /** By their hashes; `undefined` until a valid file has been read. */
  #keys: ReadonlyMap<string, Known> | undefined;
  /** When the file of these keys was modified, in milliseconds since 1970. */
  #modifiedMs: number | undefined;
  /** Keys that were found, by their text: to hash a key costs more than the other checks of a request together. */
  #found = new Map<string, ApiKey>();
  /** Why the file could not be used the last time. */
  #error: string | undefined;
  #retryTimer: NodeJS.Timeout | undefined;
  #stopped = false;
  // One load at a time: an older content must not replace a newer one.
  #loading = Promise.resolve();
  readonly #onChange: StatsListener = () => void this.#reload();

  /** @param path of the keys file */
  constructor(path: string, logger: Logger) {
    this.#path = path;
    this.#logger = logger;
  }

  get loaded(): boolean {
    return this.#keys !== undefined;
  }

  get file(): KeysFileState {
    return { modifiedMs: this.#modifiedMs, isValid: this.loaded && this.#error === undefined };
  }

  async start(): Promise<void> {
    watchFile(this.#path, { interval: POLL_INTERVAL_MS }, this.#onChange);
    await this.#reload();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    unwatchFile(this.#path, this.#onChange);
    await this.#loading;
    clearTimeout(this.#retryTimer);
  }

  find(key: string): ApiKey | undefined {
    const before = this.#found.get(key);
    if (before) return before;
    const digest = hash('sha256', key, 'buffer');
    const known = this.#keys?.get(digest.toString('hex'));
    if (!known || !timingSafeEqual(known.hash, digest)) return undefined;
    this.#found.set(key, known.key);
    return known.key;
  }

  #reload(): Promise<void> {
    clearTimeout(this.#retryTimer);
    this.#loading = this.#loading.then(() => this.#load());
    return this.#loading;
  }

  async #load(): Promise<void> {
    try {
      const { text, modifiedMs } = await readWithTime(this.#path);
      const entries = parseKeysFile(text);
      const before = this.#keys;
      this.#keys = new Map(
        entries.map((entry) => {
          const bucket = before?.get(entry.hash)?.key.bucket ?? new TokenBucket();
          return [entry.hash, { key: { ...entry, bucket }, hash: Buffer.from(entry.hash, 'hex') }];
        }),
      );
      this.#found = new Map();
      this.#modifiedMs = modifiedMs;
      this.#error = undefined;
      this.#logger.info({ path: this.#path, keys: entries.length }, 'API keys loaded');
    } catch (error) {
      const reason = (error as Error).message;
      if (reason !== this.#error) this.#logError(reason);
      this.#error = reason;
      // A file may become readable without a change that polling would notice.
      if (!this.#stopped) this.#retryTimer = setTimeout(() => void this.#reload(), POLL_INTERVAL_MS);
    }
  }

  #logError(reason: string): void {
    const path = this.#path;
    if (this.#keys) {
      const keys = this.#keys.size;
      this.#logger.error({ path, reason, keys }, 'the keys file cannot be used; the last valid keys stay in force');
    } else this.#logger.error({ path, reason }, 'the keys file cannot be used; requests with a key get 503');
  }
}

/** Reads a file, with the time when what is read was written. @throws the errors of the file system */
async function readWithTime(path: string): Promise<{ readonly text: string; readonly modifiedMs: number }> {
  await using file = await open(path);
  const { mtimeMs: modifiedMs } = await file.stat();
  return { text: await file.readFile('utf8'), modifiedMs };
}
