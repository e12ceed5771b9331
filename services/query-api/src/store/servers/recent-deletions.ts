import type { Deletion } from '../tables.ts';
import type { RecentDeletion, ServerState } from './server-state.ts';

/** How long the statements of a batch may take that stores a deletion, in milliseconds. */
const STORING_MS = 90_000;

/** For how long a deletion may be missing on a server that is read, in milliseconds, and be stored on another one. */
export function recentMs(staleMsMax: number): number {
  return staleMsMax + STORING_MS;
}

interface Entry {
  version: number;
  /** The servers that have it. */
  readonly servers: Set<string>;
  /** When a poll brought it last, on the clock of `performance`. */
  seenAt: number;
}

/**
 * The deletions that servers have stored lately. A user is hidden as soon as any server has the deletion, also where the
 * server that is read does not have it yet.
 */
export class RecentDeletions {
  readonly #keptMs: number;
  readonly #now: () => number;
  /** By workspace and user. */
  readonly #entries = new Map<string, Map<string, Entry>>();
  /** Of each server and workspace: until when it may have stored more than its last poll has listed, on the clock of `performance`. */
  readonly #unlisted = new Map<string, ReadonlyMap<string, number>>();

  /** @param keptMs how long one is kept after a poll has brought it; no server that is read is that far behind */
  constructor(keptMs: number, now: () => number = performance.now.bind(performance)) {
    this.#keptMs = keptMs;
    this.#now = now;
  }

  /**
   * Notes what a poll of a server has brought.
   *
   * @param unlistedMs that of its {@link ServerState}. Default: it has listed all
   */
  add(
    server: string,
    deletions: readonly RecentDeletion[],
    unlistedMs: ServerState['unlistedMs'] = new Map<string, number>(),
  ): void {
    const now = this.#now();
    this.#unlisted.set(server, new Map([...unlistedMs].map(([workspace, ms]) => [workspace, now - ms])));
    for (const { workspace, user, version } of deletions) {
      const ofWorkspace = this.#entries.get(workspace) ?? new Map<string, Entry>();
      this.#entries.set(workspace, ofWorkspace);
      const known = ofWorkspace.get(user);
      const isNewest = known === undefined || version > known.version;
      const entry = isNewest ? { version, servers: new Set<string>(), seenAt: 0 } : known;
      if (version === entry.version) entry.servers.add(server);
      entry.seenAt = this.#now();
      ofWorkspace.set(user, entry);
    }
    this.#forgetOld();
  }

  /** Returns those of a workspace that not all of some servers are known to have. */
  missingAt(servers: readonly string[], workspace: string): Deletion[] {
    return [...(this.#entries.get(workspace) ?? [])].flatMap(([user, { version, servers: having }]) =>
      servers.every((server) => having.has(server)) ? [] : [{ user, version }],
    );
  }

  /**
   * Returns until when other servers may have stored deletions of a workspace that no poll has listed, on the clock of `performance`:
   * a server that has what was sent until then has these as well.
   */
  unlistedUntil(server: string, workspace: string): number {
    const times = [...this.#unlisted].map(([other, until]) => (other === server ? undefined : until.get(workspace)));
    return Math.max(Number.NEGATIVE_INFINITY, ...times.filter((time) => time !== undefined));
  }

  #forgetOld(): void {
    const before = this.#now() - this.#keptMs;
    for (const [workspace, ofWorkspace] of this.#entries) {
      for (const [user, { seenAt }] of ofWorkspace) if (seenAt < before) ofWorkspace.delete(user);
      if (ofWorkspace.size === 0) this.#entries.delete(workspace);
    }
  }
}
