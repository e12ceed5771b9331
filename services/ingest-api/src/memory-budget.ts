import type { ApiKey } from '@sluice/shared/keys/key-ring';

/** Memory that one request holds; it grows as the body arrives and as rows are made of it. */
export interface Reservation {
  /** Takes `bytes` more if the shares of the request's key and workspace and what is free allow it. */
  grow(bytes: number): boolean;
  shrink(bytes: number): void;
  /** Gives everything back. May be called again. */
  release(): void;
  readonly bytes: number;
}

/** The memory that all requests under way may hold together. */
export interface MemoryBudget {
  open(key: Pick<ApiKey, 'hash' | 'workspace'>): Reservation;
  readonly reservedBytes: number;
}

/** A workspace may hold at most this many times what is free: alone two thirds of the budget, and always leaving a third. */
const WORKSPACE_SHARE = 2;

/** The same for one key: alone it may hold half of the budget. */
const KEY_SHARE = 1;

/**
 * A budget that one key or workspace cannot use up. What each may hold follows from what is free, so newcomers find
 * memory at any time and nothing lies idle (dynamic thresholds: Choudhury and Hahne, IEEE/ACM ToN 6(2), 1998).
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

      return {
        grow(bytes) {
          const free = bytesMax - reserved - bytes;
          if (free < 0) return false;
          if ((held.get(workspaceHolder) ?? 0) + bytes > WORKSPACE_SHARE * free) return false;
          if ((held.get(keyHolder) ?? 0) + bytes > KEY_SHARE * free) return false;
          change(bytes);
          return true;
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
