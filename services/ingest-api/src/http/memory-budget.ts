import type { ApiKey } from '@sluice/shared/keys/key-ring';

/** The memory that one request holds. It grows as the body arrives and as rows are created from it. */
export interface Reservation {
  /** Whether `bytes` more could be reserved now. */
  fits(bytes: number): boolean;
  /** Reserves `bytes` more and returns true, or returns false when they do not fit. */
  grow(bytes: number): boolean;
  shrink(bytes: number): void;
  /** Releases everything. It may be called again. */
  release(): void;
  readonly bytes: number;
}

/** The memory that all requests under way may hold together. */
export interface MemoryBudget {
  open(key: Pick<ApiKey, 'hash' | 'workspace'>): Reservation;
  readonly reservedBytes: number;
}

/** A workspace may hold this many times the free memory: when it is alone, two thirds of the budget. */
const WORKSPACE_SHARE = 2;

/** A key may hold this many times the free memory: when it is alone, half of the budget. */
const KEY_SHARE = 1;

/**
 * A budget that no single key or workspace can use up. The share of each depends on what is free, so a newcomer always
 * finds memory, and none is set aside for keys that send nothing (dynamic thresholds: Choudhury and Hahne, IEEE/ACM ToN
 * 6(2), 1998).
 *
 * For example, of 900 MiB one workspace can hold 600: twice the 300 that stay free. A second workspace can then hold
 * 200: twice the 100 that stay free.
 */
export function createMemoryBudget(bytesMax: number): MemoryBudget {
  const held = new Map<string, number>();
  let reserved = 0;

  function add(holder: string, bytes: number): void {
    const sum = (held.get(holder) ?? 0) + bytes;
    if (sum === 0) held.delete(holder);
    else held.set(holder, sum);
  }

  return {
    open({ hash, workspace }) {
      const keyHolder = `key ${hash}`;
      const workspaceHolder = `workspace ${workspace}`;
      let own = 0;

      function change(bytes: number): void {
        own += bytes;
        reserved += bytes;
        add(keyHolder, bytes);
        add(workspaceHolder, bytes);
      }

      function fits(bytes: number): boolean {
        const free = bytesMax - reserved - bytes;
        const ofWorkspace = (held.get(workspaceHolder) ?? 0) + bytes;
        const ofKey = (held.get(keyHolder) ?? 0) + bytes;
        return ofWorkspace <= WORKSPACE_SHARE * free && ofKey <= KEY_SHARE * free;
      }

      return {
        fits,
        grow(bytes) {
          const granted = fits(bytes);
          if (granted) change(bytes);
          return granted;
        },
        shrink: (bytes) => change(-bytes),
        release: () => change(-own),
        get bytes() {
          return own;
        },
      };
    },
    get reservedBytes() {
      return reserved;
    },
  };
}
