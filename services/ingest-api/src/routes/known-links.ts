import type { Nobody } from '@sluice/submissions/reading/nobody';
import { type Link, type LinkRegister, namesNobody } from '@sluice/submissions/rows/link-row';
import type { IngestMetrics } from '../metrics.ts';

/** How many anonymous ids of one user a process lets through. Many more share one identifier than one person has devices. */
export const ANONYMOUS_IDS_MAX = 1_000;

/**
 * For how long a link that Kafka has is not written again, in milliseconds. So long may a user who was deleted and comes back be a
 * stranger to its visitors, where another process has taken the deletion.
 */
export const KNOWN_MS = 3_600_000;

/** How many characters of identifiers are remembered, with some for each. The users who were named least recently are forgotten first. */
const CHARACTERS_MAX = 16 * 1_024 * 1_024;
const CHARACTERS_EACH = 64;

/** What is known of a user. */
class KnownUser {
  /** When Kafka last got the link of each anonymous id, in milliseconds. */
  readonly writtenMs = new Map<string, number>();
  characters: number;
  isReported = false;

  constructor(name: string) {
    this.characters = name.length + CHARACTERS_EACH;
  }
}

export interface KnownLinksOptions {
  /** Whoever is never linked. */
  readonly nobody: Nobody;
  /** A clock that never goes back, in milliseconds. */
  readonly now: () => number;
  readonly metrics: Pick<IngestMetrics, 'refusedLinks'>;
  readonly logger: { warn(fields: object, message: string): void };
  readonly charactersMax?: number;
}

/**
 * The links that Kafka has, as far as this process remembers. A link is remembered once Kafka has acknowledged it, and for
 * a while only: what was forgotten is written again, which changes nothing.
 */
export class KnownLinks {
  readonly #options: KnownLinksOptions;
  /** In the order in which they were named last. */
  readonly #users = new Map<string, KnownUser>();
  #characters = 0;
  #deletions = 0;

  constructor(options: KnownLinksOptions) {
    this.#options = options;
  }

  /** How many deletions of users this process has taken. A link that was accepted before one of them is not remembered after it. */
  get deletions(): number {
    return this.#deletions;
  }

  /** Returns the register of the links of one request. */
  ofRequest(workspace: string): RequestLinks {
    return new RequestLinks(this, workspace);
  }

  /**
   * Forgets a user who is deleted: the user's links are new when the user comes back. Who was merged into the user is deleted by the writer, and
   * not forgotten: links of those count as known for up to {@link KNOWN_MS}.
   */
  forget(workspace: string, userId: string): void {
    this.#deletions += 1;
    this.#remove(keyOf(workspace, userId));
  }

  /** @param pending the anonymous ids that the request links to the user besides */
  state(workspace: string, link: Link, pending: ReadonlySet<string>): 'known' | 'new' | 'nobody' | 'refused' {
    const { anonymousId, userId } = link;
    const key = keyOf(workspace, userId);
    const user = this.#users.get(key);
    const writtenMs = user?.writtenMs.get(anonymousId);
    if (writtenMs !== undefined) return this.#options.now() - writtenMs < KNOWN_MS ? 'known' : 'new';
    if (namesNobody(link, this.#options.nobody)) return 'nobody';
    if ((user?.writtenMs.size ?? 0) + pending.size < ANONYMOUS_IDS_MAX) return 'new';
    this.#refuse(workspace, user);
    return 'refused';
  }

  remember(workspace: string, userId: string, anonymousIds: Iterable<string>): void {
    const { now, charactersMax = CHARACTERS_MAX } = this.#options;
    const key = keyOf(workspace, userId);
    const user = this.#users.get(key) ?? new KnownUser(key);
    this.#remove(key);
    for (const anonymousId of anonymousIds) {
      if (!user.writtenMs.has(anonymousId)) user.characters += anonymousId.length + CHARACTERS_EACH;
      user.writtenMs.set(anonymousId, now());
    }
    this.#users.set(key, user);
    this.#characters += user.characters;
    for (const oldest of this.#users.keys()) {
      if (this.#characters <= charactersMax) return;
      this.#remove(oldest);
    }
  }

  #remove(key: string): void {
    this.#characters -= this.#users.get(key)?.characters ?? 0;
    this.#users.delete(key);
  }

  #refuse(workspace: string, user: KnownUser | undefined): void {
    const { metrics, logger } = this.#options;
    metrics.refusedLinks.inc();
    if (!user || user.isReported) return;
    user.isReported = true;
    logger.warn(
      { workspace, anonymousIds: ANONYMOUS_IDS_MAX },
      'a user has more anonymous ids than one person has; further ones are not linked',
    );
  }
}

/** The links of one request. */
export class RequestLinks implements LinkRegister {
  readonly #known: KnownLinks;
  readonly #workspace: string;
  readonly #deletions: number;
  /** The anonymous ids that get a row, by user. */
  readonly #pending = new Map<string, Set<string>>();

  constructor(known: KnownLinks, workspace: string) {
    this.#known = known;
    this.#workspace = workspace;
    this.#deletions = known.deletions;
  }

  needsRow(link: Link): boolean {
    const pending = this.#pending.get(link.userId) ?? new Set();
    if (pending.has(link.anonymousId)) return false;
    if (this.#known.state(this.#workspace, link, pending) !== 'new') return false;
    this.#pending.set(link.userId, pending.add(link.anonymousId));
    return true;
  }

  /** Call it once Kafka has the rows. */
  remember(): void {
    if (this.#known.deletions > this.#deletions) return;
    for (const [userId, anonymousIds] of this.#pending) {
      this.#known.remember(this.#workspace, userId, anonymousIds);
    }
  }
}

function keyOf(workspace: string, userId: string): string {
  return `${workspace}\0${userId}`;
}
