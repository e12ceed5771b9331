import { Problem } from '@sluice/shared/http/problem';

/** How many tests of a workspace are under way at once in an instance. */
export const TESTS_PER_WORKSPACE = 2;

/** When a client may try again whose test was refused, in seconds. */
const RETRY_AFTER_SECONDS = 5;

interface Workspace {
  deliveries: number;
  tests: number;
  /** In the order in which they came. */
  readonly waiting: Set<() => void>;
}

/**
 * How many attempts of one workspace are under way at once in this instance. Tests have places of their own: whoever sends them
 * delays no delivery.
 */
export class AttemptPlaces {
  readonly #deliveriesMax: number;
  readonly #workspaces = new Map<string, Workspace>();

  /** @param deliveriesMax of a workspace */
  constructor(deliveriesMax: number) {
    this.#deliveriesMax = deliveriesMax;
  }

  /** Waits for the place of a delivery, and returns the function that frees it. The signal ends the wait, without a place. */
  async forDelivery(workspace: string, signal: AbortSignal): Promise<(() => void) | undefined> {
    if (signal.aborted) return undefined;
    const state = this.#stateOf(workspace);
    if (state.deliveries < this.#deliveriesMax) state.deliveries += 1;
    else if (!(await turnOf(state, signal))) return undefined;
    return () => {
      const [next] = state.waiting;
      // It gets this place.
      if (next) return next();
      state.deliveries -= 1;
      this.#forgetIdle(workspace, state);
    };
  }

  /** Takes the place of a test, and returns the function that frees it. @throws {Problem} `rate_limited` */
  forTest(workspace: string): () => void {
    const state = this.#stateOf(workspace);
    if (state.tests >= TESTS_PER_WORKSPACE) {
      const detail = `${TESTS_PER_WORKSPACE} tests of this workspace are under way already; try again when they have ended.`;
      throw new Problem('rate_limited', detail, { retryAfter: RETRY_AFTER_SECONDS });
    }
    state.tests += 1;
    return () => {
      state.tests -= 1;
      this.#forgetIdle(workspace, state);
    };
  }

  #stateOf(workspace: string): Workspace {
    const known = this.#workspaces.get(workspace) ?? { deliveries: 0, tests: 0, waiting: new Set<() => void>() };
    this.#workspaces.set(workspace, known);
    return known;
  }

  #forgetIdle(workspace: string, { deliveries, tests }: Workspace): void {
    if (deliveries + tests === 0) this.#workspaces.delete(workspace);
  }
}

/** Resolves when another delivery hands its place on; with false when the signal aborts before. */
function turnOf({ waiting }: Workspace, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const end = (isAdmitted: boolean) => {
      waiting.delete(admit);
      signal.removeEventListener('abort', leave);
      resolve(isAdmitted);
    };
    const admit = () => end(true);
    const leave = () => end(false);
    waiting.add(admit);
    signal.addEventListener('abort', leave);
  });
}
