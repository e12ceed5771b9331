import { Problem } from '@sluice/shared/http/problem';
import type { QueryConfig } from '../config.ts';

/** The `Retry-After` of a client that is not let in, in seconds. */
export const RETRY_AFTER_SECONDS = 10;

export type PlacesConfig = Pick<QueryConfig, 'STREAM_LISTENERS_MAX' | 'STREAM_LISTENERS_PER_WORKSPACE'>;

/** How many clients may listen at a time, of a workspace and of all. */
export class ListenerPlaces {
  readonly #config: PlacesConfig;
  /** How many listen, or are about to, by workspace. */
  readonly #counts = new Map<string, number>();

  constructor(config: PlacesConfig) {
    this.#config = config;
  }

  /**
   * Takes a place, and returns the function that frees it.
   *
   * @throws {Problem} `too_many_listeners`, `overloaded`
   */
  take(workspace: string): () => void {
    const { STREAM_LISTENERS_PER_WORKSPACE: ofWorkspaceMax, STREAM_LISTENERS_MAX: max } = this.#config;
    const ofWorkspace = this.#counts.get(workspace) ?? 0;
    if (ofWorkspace >= ofWorkspaceMax) {
      const detail = `${ofWorkspaceMax} clients listen to this workspace already; close one, or try again later.`;
      throw new Problem('too_many_listeners', detail, { retryAfter: RETRY_AFTER_SECONDS });
    }
    const all = [...this.#counts.values()].reduce((sum, count) => sum + count, 0);
    if (all >= max) {
      const detail = 'Too many clients listen already; try again later.';
      throw new Problem('overloaded', detail, { retryAfter: RETRY_AFTER_SECONDS });
    }
    this.#counts.set(workspace, ofWorkspace + 1);
    return () => this.#free(workspace);
  }

  #free(workspace: string): void {
    const count = (this.#counts.get(workspace) ?? 0) - 1;
    if (count > 0) this.#counts.set(workspace, count);
    else this.#counts.delete(workspace);
  }
}
