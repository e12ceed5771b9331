import { randomBytes } from 'node:crypto';
import { sleep } from '@sluice/shared/base/retry';
import { hashKey } from '@sluice/shared/keys/keys-file';
import { TokenBucket } from '@sluice/shared/keys/token-bucket';
import type { KnownLinks, LinkKey } from '../../http/http.ts';
import { type ConsoleDocuments, orStoreAway, type StoredDocument } from './console-documents.ts';
import type { Link } from './view.ts';

/** For how long after they were read the links hold, in milliseconds: a revoked one is refused everywhere after that. */
const KNOWN_MS_MAX = 5_000;

/** How long after a read that met an unknown key the next one begins, in milliseconds: wrong keys cost ten queries a second at most. */
const PAUSE_MS = 100;

/** How many keys one query looks up. */
const LOOKED_UP_MAX = 1_000;

/** How long a key is remembered that nobody has used, in milliseconds: its bucket is full again long before. */
const FORGOTTEN_MS = 60_000;

/** Requests a second of one link: each tile of a dashboard is one. */
const LINK_RATE = 50;

/** Creates the key of a link: `vk_` and 32 random bytes in base64url. */
export function generateLinkKey(): string {
  return `vk_${randomBytes(32).toString('base64url')}`;
}

interface KnownKey {
  readonly key: LinkKey;
  /** When the read began that found it. */
  readonly readAtMs: number;
}

/**
 * Finds links by their keys. One query at a time looks up all keys that are asked for, so wrong ones cost next to nothing, and
 * nothing of the slots and connections that requests wait for.
 */
export class LinkKeys implements KnownLinks {
  readonly #links: ConsoleDocuments<Link>;
  /** By their hashes; wrong keys are not among them. */
  readonly #keys = new Map<string, KnownKey>();
  /** The hashes that the next query looks up. */
  #asked = new Map<string, PromiseWithResolvers<LinkKey | undefined>>();
  #changedAtMs = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  constructor(links: ConsoleDocuments<Link>) {
    this.#links = links;
  }

  async find(text: string): Promise<LinkKey | undefined> {
    const hash = hashKey(text);
    const known = this.#keys.get(hash);
    if (known && known.readAtMs >= Math.max(performance.now() - KNOWN_MS_MAX, this.#changedAtMs)) return known.key;
    const asked = this.#asked.get(hash) ?? Promise.withResolvers<LinkKey | undefined>();
    this.#asked.set(hash, asked);
    this.#reading ??= this.#readAll().finally(() => {
      this.#reading = undefined;
    });
    return await asked.promise;
  }

  /** What was read before holds no longer, since this instance has changed a link. */
  forget(): void {
    this.#changedAtMs = performance.now();
  }

  async #readAll(): Promise<void> {
    while (this.#asked.size > 0) {
      const batch = this.#nextBatch();
      const startedAt = performance.now();
      try {
        const found = await orStoreAway(this.#links.ofHashes([...batch.keys()]));
        const byHash = new Map(found.map((link) => [link.content.hash, link]));
        for (const [hash, { resolve }] of batch) resolve(this.#keep(hash, byHash.get(hash), startedAt));
        if (found.length < batch.size) await sleep(Math.max(0, startedAt + PAUSE_MS - performance.now()));
      } catch (error) {
        for (const { reject } of batch.values()) reject(error);
      }
      this.#removeUnused();
    }
  }

  /** Takes what is looked up next: keys that were known first, whatever else is asked for. */
  #nextBatch(): ReadonlyMap<string, PromiseWithResolvers<LinkKey | undefined>> {
    const [known, unknown] = [true, false].map((is) =>
      [...this.#asked].filter(([hash]) => this.#keys.has(hash) === is),
    );
    const ordered = [...(known ?? []), ...(unknown ?? [])];
    this.#asked = new Map(ordered.slice(LOOKED_UP_MAX));
    return new Map(ordered.slice(0, LOOKED_UP_MAX));
  }

  #keep(hash: string, link: StoredDocument<Link> | undefined, readAtMs: number): LinkKey | undefined {
    if (!link) {
      this.#keys.delete(hash);
      return undefined;
    }
    const { workspace, content } = link;
    const bucket = this.#keys.get(hash)?.key.bucket ?? new TokenBucket();
    const key = { workspace, hash, dashboard: content.dashboard, rateLimit: LINK_RATE, bucket };
    this.#keys.set(hash, { key, readAtMs });
    return key;
  }

  #removeUnused(): void {
    const before = performance.now() - FORGOTTEN_MS;
    for (const [hash, { readAtMs }] of this.#keys) if (readAtMs < before) this.#keys.delete(hash);
  }
}
