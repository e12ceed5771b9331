import { hash, timingSafeEqual } from 'node:crypto';
import { type StatsListener, unwatchFile, watchFile } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Component } from '../lifecycle.ts';
import type { Logger } from '../log.ts';
import { type KeyEntry, parseKeysFile } from './keys-file.ts';
import { createTokenBucket, type TokenBucket } from './token-bucket.ts';

/** How often the file is looked at. Polling notices every kind of change, a mounted secret's swapped link included. */
const POLL_INTERVAL_MS = 500;

/** A key that is known, with what it may still do; the bucket stays the same while the file changes. */
export interface ApiKey extends KeyEntry {
  readonly bucket: TokenBucket;
}

export interface KeyRing extends Component {
  /** Whether the keys are known: a good file has been read since the start. Until then no key can be judged. */
  readonly loaded: boolean;
  /** The key, or `undefined` when there is none. */
  find(key: string): ApiKey | undefined;
}

/** What a key ring lacks, as a phrase for `/readyz`; nothing once the keys are known. */
export function missingKeys({ loaded }: Pick<KeyRing, 'loaded'>): readonly string[] {
  return loaded ? [] : ['the keys file cannot be used'];
}

interface Known {
  readonly key: ApiKey;
  readonly hash: Buffer;
}

/**
 * The keys of `path`, followed as the file changes: a change is in force within a second. A file that is broken or
 * missing leaves the last good keys in force, says so in the log, and is read again until it is good.
 */
export function createKeyRing(path: string, logger: Logger): KeyRing {
  let keys: ReadonlyMap<string, Known> | undefined;
  /** Why the file could not be used the last time. */
  let fault: string | undefined;
  let retryTimer: NodeJS.Timeout | undefined;
  let stopped = false;
  // One after the other: an older content must not replace a newer one.
  let loading = Promise.resolve();

  function reload(): Promise<void> {
    clearTimeout(retryTimer);
    loading = loading.then(load);
    return loading;
  }

  async function load(): Promise<void> {
    try {
      const entries = parseKeysFile(await readFile(path, 'utf8'));
      const before = keys ?? new Map<string, Known>();
      keys = new Map(
        entries.map((entry) => {
          const bucket = before.get(entry.hash)?.key.bucket ?? createTokenBucket();
          return [entry.hash, { key: { ...entry, bucket }, hash: Buffer.from(entry.hash, 'hex') }];
        }),
      );
      fault = undefined;
      logger.info({ path, keys: entries.length }, 'API keys loaded');
    } catch (error) {
      const reason = (error as Error).message;
      if (reason !== fault) logFault(reason);
      fault = reason;
      // A file that could not be read may be readable later without any change of it.
      if (!stopped) retryTimer = setTimeout(() => void reload(), POLL_INTERVAL_MS);
    }
  }

  function logFault(reason: string): void {
    if (keys) logger.error({ path, reason, keys: keys.size }, 'the keys file cannot be used; the last good keys stay');
    else logger.error({ path, reason }, 'the keys file cannot be used; requests with a key are answered 503');
  }

  const onChange: StatsListener = () => void reload();

  return {
    name: 'API keys',
    get loaded() {
      return keys !== undefined;
    },
    async start() {
      watchFile(path, { interval: POLL_INTERVAL_MS }, onChange);
      await reload();
    },
    async stop() {
      stopped = true;
      unwatchFile(path, onChange);
      await loading;
      clearTimeout(retryTimer);
    },
    find(key) {
      const digest = hash('sha256', key, 'buffer');
      const known = keys?.get(digest.toString('hex'));
      return known && timingSafeEqual(known.hash, digest) ? known.key : undefined;
    },
  };
}
