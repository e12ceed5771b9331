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
  const budget = { free: bytesMax };
  const keys = new Accounts();
  const workspaces = new Accounts();
  return {
    open: ({ hash, workspace }) => new RequestReservation(budget, keys.of(hash), workspaces.of(workspace)),
    get reservedBytes() {
      return bytesMax - budget.free;
    },
  };
}

/** What the requests of one key, or of one workspace, hold together. */
interface Account {
  bytes: number;
}

/** There are as many as there are keys, and they stay: to look one up costs less than to create it. */
class Accounts {
  readonly #accounts = new Map<string, Account>();

  of(name: string): Account {
    let account = this.#accounts.get(name);
    if (!account) {
      account = { bytes: 0 };
      this.#accounts.set(name, account);
    }
    return account;
  }
}

class RequestReservation implements Reservation {
  readonly #budget: { free: number };
  readonly #key: Account;
  readonly #workspace: Account;
  #bytes = 0;

  constructor(budget: { free: number }, key: Account, workspace: Account) {
    this.#budget = budget;
    this.#key = key;
    this.#workspace = workspace;
  }

  get bytes(): number {
    return this.#bytes;
  }

  fits(bytes: number): boolean {
    const free = this.#budget.free - bytes;
    return this.#workspace.bytes + bytes <= WORKSPACE_SHARE * free && this.#key.bytes + bytes <= KEY_SHARE * free;
  }

  grow(bytes: number): boolean {
    const granted = this.fits(bytes);
    if (granted) this.#change(bytes);
    return granted;
  }

  shrink(bytes: number): void {
    this.#change(-bytes);
  }

  release(): void {
    this.#change(-this.#bytes);
  }

  #change(bytes: number): void {
    this.#bytes += bytes;
    this.#key.bytes += bytes;
    this.#workspace.bytes += bytes;
    this.#budget.free -= bytes;
  }
}
