import { hash, timingSafeEqual } from 'node:crypto';
import type { Logger } from '../base/log.ts';
import { FollowedFile, type FollowedFileState } from '../config/followed-file.ts';
import type { Component } from '../service/lifecycle.ts';
import { type KeyEntry, parseKeysFile } from './keys-file.ts';
import { TokenBucket } from './token-bucket.ts';

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

interface Known {
  readonly key: ApiKey;
  readonly hash: Buffer;
}

/** A key ring that follows a keys file, as {@link FollowedFile} says. The log says when the file cannot be used. */
export class FileKeyRing implements KeyRing {
  readonly name = 'API keys';
  readonly #logger: Logger;
  readonly #followed: FollowedFile<readonly KeyEntry[]>;
  /** By their hashes; `undefined` until a valid file has been read. */
  #keys: ReadonlyMap<string, Known> | undefined;
  /** Keys that were found, by their text: to hash a key costs more than the other checks of a request together. */
  #found = new Map<string, ApiKey>();

  /** @param path of the keys file */
  constructor(path: string, logger: Logger) {
    this.#logger = logger;
    this.#followed = new FollowedFile({
      path,
      parse: parseKeysFile,
      onContent: (entries) => this.#replace(entries, path),
      onInvalid: (reason) => this.#logError(reason, path),
    });
  }

  get loaded(): boolean {
    return this.#keys !== undefined;
  }

  get file(): FollowedFileState {
    return this.#followed.state;
  }

  async start(): Promise<void> {
    await this.#followed.start();
  }

  async stop(): Promise<void> {
    await this.#followed.stop();
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

  #replace(entries: readonly KeyEntry[], path: string): void {
    const before = this.#keys;
    this.#keys = new Map(
      entries.map((entry) => {
        const bucket = before?.get(entry.hash)?.key.bucket ?? new TokenBucket();
        return [entry.hash, { key: { ...entry, bucket }, hash: Buffer.from(entry.hash, 'hex') }];
      }),
    );
    this.#found = new Map();
    this.#logger.info({ path, keys: entries.length }, 'API keys loaded');
  }

  #logError(reason: string, path: string): void {
    if (this.#keys) {
      const keys = this.#keys.size;
      this.#logger.error({ path, reason, keys }, 'the keys file cannot be used; the last valid keys stay in force');
    } else this.#logger.error({ path, reason }, 'the keys file cannot be used; requests with a key get 503');
  }
}
