import { randomBytes } from 'node:crypto';
import { hashKey } from '@sluice/shared/keys/keys-file';
import { TokenBucket } from '@sluice/shared/keys/token-bucket';
import { type ConsoleDocuments, orStoreAway } from './console-documents.ts';
import type { Link } from './view.ts';

/** Only a text of this form is looked up. Keys of a keys file begin with `sk_`. */
const FORM = /^vk_[\w-]{43}$/;

/** For how long after they were read the links hold, in milliseconds: a revoked one is refused everywhere after that. */
const KNOWN_MS_MAX = 5_000;

/** How old the links may be that do not have a key, in milliseconds, so that wrong keys cost one query a second at most. */
const UNKNOWN_MS_MAX = 1_000;

/** Requests a second of one link: each tile of a dashboard is one. */
const LINK_RATE = 50;

/** The key of a link: it reads one dashboard. */
export interface LinkKey {
  readonly workspace: string;
  readonly hash: string;
  readonly dashboard: string;
  readonly rateLimit: number;
  readonly bucket: TokenBucket;
}

/** Creates the key of a link: `vk_` and 32 random bytes in base64url. */
export function generateLinkKey(): string {
  return `vk_${randomBytes(32).toString('base64url')}`;
}

/** Whether a text can be the key of a link. */
export function isLinkKey(text: string): boolean {
  return FORM.test(text);
}

/** The keys of all links, which are read together: so a wrong key costs nothing of its own. */
export class LinkKeys {
  readonly #links: ConsoleDocuments<Link>;
  /** By their hashes. */
  #keys: ReadonlyMap<string, LinkKey> = new Map();
  #readAtMs = Number.NEGATIVE_INFINITY;
  #changedAtMs = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  constructor(links: ConsoleDocuments<Link>) {
    this.#links = links;
  }

  /** @throws {Problem} `store_unavailable` */
  async find(text: string): Promise<LinkKey | undefined> {
    const hash = hashKey(text);
    await this.#read(KNOWN_MS_MAX);
    if (!this.#keys.has(hash)) await this.#read(UNKNOWN_MS_MAX);
    return this.#keys.get(hash);
  }

  /** What was read before holds no longer, since this instance has changed a link. */
  forget(): void {
    this.#changedAtMs = performance.now();
  }

  /** Reads the links, one read at a time, unless they are young enough. */
  async #read(ageMsMax: number): Promise<void> {
    const needed = Math.max(performance.now() - ageMsMax, this.#changedAtMs);
    while (this.#readAtMs < needed) {
      this.#reading ??= this.#readAll().finally(() => {
        this.#reading = undefined;
      });
      await this.#reading;
    }
  }

  async #readAll(): Promise<void> {
    const atMs = performance.now();
    const links = await orStoreAway(this.#links.list(''));
    const before = this.#keys;
    this.#keys = new Map(
      links.map(({ workspace, content: { hash, dashboard } }) => {
        const bucket = before.get(hash)?.bucket ?? new TokenBucket();
        return [hash, { workspace, hash, dashboard, rateLimit: LINK_RATE, bucket }];
      }),
    );
    this.#readAtMs = atMs;
  }
}
