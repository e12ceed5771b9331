import { hash, timingSafeEqual } from 'node:crypto';
import { type StatsListener, unwatchFile, watchFile } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Component } from '../lifecycle.ts';
import type { Logger } from '../log.ts';
import { type KeyEntry, parseKeysFile } from './keys-file.ts';
import { createTokenBucket, type TokenBucket } from './token-bucket.ts';

/** How often the file is checked, in milliseconds. Polling notices every change, also a mounted secret's new link. */
const POLL_INTERVAL_MS = 500;

/** A key with the bucket that holds it to its rate. The bucket outlives changes of the file. */
export interface ApiKey extends KeyEntry {
  readonly bucket: TokenBucket;
}

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

/**
 * Creates a key ring that follows the file: a change is in force within a second. When the file is broken or missing, the
 * last valid keys stay in force, the log says so, and the file is read again until it is valid.
 */
export function createKeyRing(path: string, logger: Logger): KeyRing {
  let keys: ReadonlyMap<string, Known> | undefined;
  /** Keys that were found, by their text: to hash a key costs more than the other checks of a request together. */
  let found = new Map<string, ApiKey>();
  /** Why the file could not be used the last time. */
  let fault: string | undefined;
  let retryTimer: NodeJS.Timeout | undefined;
  let stopped = false;
  // One load at a time: an older content must not replace a newer one.
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
      found = new Map();
      fault = undefined;
      logger.info({ path, keys: entries.length }, 'API keys loaded');
    } catch (error) {
      const reason = (error as Error).message;
      if (reason !== fault) logFault(reason);
      fault = reason;
      // A file may become readable without a change that polling would notice.
      if (!stopped) retryTimer = setTimeout(() => void reload(), POLL_INTERVAL_MS);
    }
  }

  function logFault(reason: string): void {
    if (keys)
      logger.error(
        { path, reason, keys: keys.size },
        'the keys file cannot be used; the last valid keys stay in force',
      );
    else logger.error({ path, reason }, 'the keys file cannot be used; requests with a key get 503');
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
      const before = found.get(key);
      if (before) return before;
      const digest = hash('sha256', key, 'buffer');
      const known = keys?.get(digest.toString('hex'));
      if (!known || !timingSafeEqual(known.hash, digest)) return undefined;
      found.set(key, known.key);
      return known.key;
    },
  };
}
