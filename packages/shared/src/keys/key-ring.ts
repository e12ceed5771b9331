import { hash, timingSafeEqual } from 'node:crypto';
import { type StatsListener, unwatchFile, watchFile } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { Part } from '../lifecycle.ts';
import type { Logger } from '../log.ts';
import { type KeyEntry, parseKeysFile } from './keys-file.ts';
import { createTokenBucket, type TokenBucket } from './token-bucket.ts';

/** How often the file is looked at. Polling notices every kind of change, a mounted secret's swapped link included. */
const POLL_INTERVAL_MS = 500;

/** A key that is known, with what it may still do; the bucket stays the same while the file changes. */
export interface ApiKey extends KeyEntry {
  readonly bucket: TokenBucket;
}

export interface KeyRing extends Part {
  /** The key, or `undefined` when there is none. */
  find(key: string): ApiKey | undefined;
}

interface Known {
  readonly key: ApiKey;
  readonly hash: Buffer;
}

/**
 * The keys of `path`, followed as the file changes: a change is in force within a second. A file that is broken or
 * missing leaves the last good keys in force, and says so in the log.
 */
export function createKeyRing(path: string, logger: Logger): KeyRing {
  let keys: ReadonlyMap<string, Known> = new Map();

  async function load(): Promise<void> {
    try {
      const entries = parseKeysFile(await readFile(path, 'utf8'));
      const before = keys;
      keys = new Map(
        entries.map((entry) => {
          const bucket = before.get(entry.hash)?.key.bucket ?? createTokenBucket();
          return [entry.hash, { key: { ...entry, bucket }, hash: Buffer.from(entry.hash, 'hex') }];
        }),
      );
      logger.info({ path, keys: entries.length }, 'API keys loaded');
    } catch (error) {
      logger.error(
        { path, reason: (error as Error).message, keys: keys.size },
        'the keys file cannot be used; the last good keys stay',
      );
    }
  }

  const onChange: StatsListener = () => void load();

  return {
    name: 'API keys',
    async start() {
      watchFile(path, { interval: POLL_INTERVAL_MS }, onChange);
      await load();
    },
    async stop() {
      unwatchFile(path, onChange);
    },
    find(key) {
      const digest = hash('sha256', key, 'buffer');
      const known = keys.get(digest.toString('hex'));
      return known && timingSafeEqual(known.hash, digest) ? known.key : undefined;
    },
  };
}
