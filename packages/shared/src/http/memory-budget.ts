import type { ApiKey } from '../keys/key-ring.ts';

/** What a request takes before anything of its body has arrived: its socket, headers and objects; in bytes. */
export const REQUEST_BYTES = 16 * 1_024;

/** The memory that one request holds. It grows with what arrives for the request, and with what is made from that. */
export interface Reservation {
  /** Whether `bytes` more could be reserved now. */
  fits(bytes: number): boolean;
  /** Reserves `bytes` more and returns true, or returns false when they do not fit, or everything was released. */
  grow(bytes: number): boolean;
  shrink(bytes: number): void;
  /** Releases everything. It may be called again. */
  release(): void;
  /** Opens a reservation inside of this one, which holds it as well: it can be released earlier. */
  part(): Reservation;
  readonly bytes: number;
}

/** A key and its workspace may together hold this many times the free memory. */
const SHARE = 2;

/**
 * The memory that all requests under way may hold together, which no single key or workspace can use up. The share of each depends on what is free, so a newcomer always
 * finds memory, and none is set aside for keys that send nothing (dynamic thresholds: Choudhury and Hahne, IEEE/ACM ToN
 * 6(2), 1998). What a key holds counts with what its workspace holds, so that a newcomer in a busy workspace finds some, too.
 *
 * For example, of 900 MiB one key can hold 450 when it is alone: it and its workspace then hold twice the 450 that stay
 * free. Many keys of one workspace can hold 600 together. A second workspace then finds 150 for its first key.
 */
export class MemoryBudget {
  readonly #bytesMax: number;
  readonly #budget: { free: number };
  readonly #keys = new Accounts();
  readonly #workspaces = new Accounts();

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
    this.#budget = { free: bytesMax };
  }

  get reservedBytes(): number {
    return this.#bytesMax - this.#budget.free;
  }

  /** Opens a reservation of a key, or of a network under a workspace that no key has. Release it in any case. */
  open({ hash, workspace }: Pick<ApiKey, 'hash' | 'workspace'>): Reservation {
    return new RequestReservation(this.#budget, this.#keys.open(hash), this.#workspaces.open(workspace));
  }
}

/** What the requests of one key, or of one workspace, hold together. */
interface Account {
  bytes: number;
  close(): void;
}

/** Accounts of those who have a request under way. Others need none: whoever has many addresses must not fill the memory. */
class Accounts {
  readonly #accounts = new Map<string, { account: Account; opened: number }>();

  /** Close the account once for each time that it was opened. */
  open(name: string): Account {
    let entry = this.#accounts.get(name);
    if (!entry) {
      entry = { account: { bytes: 0, close: () => this.#close(name) }, opened: 0 };
      this.#accounts.set(name, entry);
    }
    entry.opened += 1;
    return entry.account;
  }

  #close(name: string): void {
    const entry = this.#accounts.get(name);
    if (!entry) return;
    entry.opened -= 1;
    if (entry.opened === 0) this.#accounts.delete(name);
  }
}

class RequestReservation implements Reservation {
  readonly #budget: { free: number };
  readonly #key: Account;
  readonly #workspace: Account;
  #bytes = 0;
  #released = false;

  constructor(budget: { free: number }, key: Account, workspace: Account) {
    this.#budget = budget;
    this.#key = key;
    this.#workspace = workspace;
  }

  get bytes(): number {
    return this.#bytes;
  }

  fits(bytes: number): boolean {
    const held = this.#key.bytes + this.#workspace.bytes;
    return !this.#released && held + 2 * bytes <= SHARE * (this.#budget.free - bytes);
  }

  grow(bytes: number): boolean {
    const granted = this.fits(bytes);
    if (granted) this.#change(bytes);
    return granted;
  }

  shrink(bytes: number): void {
    if (!this.#released) this.#change(-bytes);
  }

  release(): void {
    if (this.#released) return;
    this.#change(-this.#bytes);
    this.#released = true;
    this.#key.close();
    this.#workspace.close();
  }

  part(): Reservation {
    return new PartOfReservation(this);
  }

  #change(bytes: number): void {
    this.#bytes += bytes;
    this.#key.bytes += bytes;
    this.#workspace.bytes += bytes;
    this.#budget.free -= bytes;
  }
}

class PartOfReservation implements Reservation {
  readonly #whole: Reservation;
  #bytes = 0;
  #released = false;

  constructor(whole: Reservation) {
    this.#whole = whole;
  }

  get bytes(): number {
    return this.#bytes;
  }

  fits(bytes: number): boolean {
    return !this.#released && this.#whole.fits(bytes);
  }

  grow(bytes: number): boolean {
    const granted = !this.#released && this.#whole.grow(bytes);
    if (granted) this.#bytes += bytes;
    return granted;
  }

  shrink(bytes: number): void {
    if (this.#released) return;
    this.#bytes -= bytes;
    this.#whole.shrink(bytes);
  }

  release(): void {
    this.shrink(this.#bytes);
    this.#released = true;
  }

  part(): Reservation {
    return new PartOfReservation(this);
  }
}
