import { Refused } from '@sluice/shared/config/command-line';
import { DifferenceClassifier } from './classify-differences.ts';
import type { LeftOut, Part, TableSize, UserDeletion } from './compared-server.ts';
import { type ComparedTable, type Cut, DELETIONS, EVENTS, MENDED_TABLES, OTHER_TABLES } from './compared-tables.ts';
import {
  type Both,
  bucketsFor,
  type Checksums,
  type DifferentKey,
  differentBuckets,
  differentKeys,
  ofBoth,
  rowsIn,
  type Servers,
} from './different-keys.ts';

/** How many keys of a table are named that differ. */
export const NAMED_MAX = 10;

/** How many keys are kept to be mended, of those that differ and of those that may. An event may have a megabyte. */
const MENDED_MAX = 1_000;

/** How many deletions the servers may have that are not erased everywhere, or that only one of them has. */
const DELETIONS_MAX = 1_000_000;

/** How many keys are classified at a time. */
const CLASSIFIED_AT_ONCE = 100;

/** What was found out about a table, or a partition of the table `events`. */
export interface ComparedPart {
  readonly table: string;
  /** Empty where it is the whole table. */
  readonly partition: string;
  /** How many rows each server has that are compared. */
  readonly rows: Both<number>;
  readonly isSame: boolean;
}

/** What two servers differ in. */
export interface Comparison {
  readonly parts: readonly ComparedPart[];
  /** The first keys of each table that differ; of those that can be mended, more of them if they are to be. */
  readonly different: readonly NamedKey[];
  /** The first keys that may differ: events that were sent again around a deletion, and what they name. */
  readonly apart: readonly NamedKey[];
  /** How many keys may differ. */
  readonly apartCount: number;
}

export interface NamedKey {
  readonly table: string;
  readonly key: DifferentKey;
}

export interface ComparisonProgress {
  readonly part: Part;
  readonly done: number;
  readonly all: number;
}

/**
 * Compares two servers, one part after the other. It changes nothing.
 *
 * @param onPart is called before each part
 * @param mends whether what differs is to be mended
 * @throws {Refused} when their deletions are too many to be left out
 * @throws ClickHouse's errors, also when a signal has aborted
 */
export async function runComparison(
  servers: Servers,
  cut: Cut,
  signal: AbortSignal,
  onPart: (progress: ComparisonProgress) => void,
  mends: boolean,
): Promise<Comparison> {
  return await new ComparisonRun(servers, cut, signal, onPart, mends).run();
}

class ComparisonRun {
  readonly #servers: Servers;
  readonly #cut: Cut;
  readonly #signal: AbortSignal;
  readonly #onPart: (progress: ComparisonProgress) => void;
  readonly #mends: boolean;
  readonly #classifier: DifferenceClassifier;
  readonly #parts: ComparedPart[] = [];
  readonly #different: NamedKey[] = [];
  readonly #apart: NamedKey[] = [];
  #apartCount = 0;

  constructor(
    servers: Servers,
    cut: Cut,
    signal: AbortSignal,
    onPart: (progress: ComparisonProgress) => void,
    mends: boolean,
  ) {
    this.#servers = servers;
    this.#cut = cut;
    this.#signal = signal;
    this.#onPart = onPart;
    this.#mends = mends;
    this.#classifier = new DifferenceClassifier(servers, cut.until);
  }

  async run(): Promise<Comparison> {
    const sizes = await ofBoth(this.#servers, (server) => server.sizes());
    const parts = partsOf(sizes.flat());
    const deletions = await this.#compareDeletions(wholeTable(DELETIONS, sizes.flat()));
    for (const [index, part] of parts.entries()) {
      this.#onPart({ part, done: index, all: parts.length });
      await this.#compare(part, { cut: this.#cut, deletions });
    }
    return {
      parts: this.#parts,
      different: this.#different,
      apart: this.#apart,
      apartCount: this.#apartCount,
    };
  }

  /**
   * Compares the deletions, and returns those to leave out on both servers: they are not erased everywhere, or one server does not
   * have them yet.
   */
  async #compareDeletions(part: Part): Promise<UserDeletion[]> {
    const all: LeftOut = { cut: { ...this.#cut, until: Number.MAX_SAFE_INTEGER }, deletions: [] };
    const pending = await ofBoth(this.#servers, (server) => server.pendingDeletions());
    const leftOut: UserDeletion[] = pending.flat();
    const checksums = await ofBoth(this.#servers, (server) => server.checksums(part, all));
    const different: NamedKey[] = [];
    const later = [0, 0];
    for await (const keys of this.#differentKeys(part, all, checksums)) {
      for (const key of keys) {
        const rows = key.rows.flat();
        leftOut.push(...rows.map(({ workspace, user, accepted }) => ({ workspace, user, version: accepted })));
        if (rows.every(({ newest }) => newest <= this.#cut.until)) different.push({ table: part.table.name, key });
        else for (const [index, found] of key.rows.entries()) later[index] = (later[index] ?? 0) + found.length;
      }
      requireFew(leftOut);
    }
    requireFew(leftOut);
    this.#different.push(...different.slice(0, NAMED_MAX));
    const [one, other] = checksums.map(rowsIn);
    const rows = [(one ?? 0) - (later[0] ?? 0), (other ?? 0) - (later[1] ?? 0)] as const;
    this.#note(part, rows, different.length === 0);
    return leftOut;
  }

  async #compare(part: Part, leftOut: LeftOut): Promise<void> {
    const checksums = await ofBoth(this.#servers, (server) => server.checksums(part, leftOut));
    const [one, other] = checksums;
    const rows = [rowsIn(one), rowsIn(other)] as const;
    const isSame = differentBuckets(checksums).length === 0 || (await this.#classifyPart(part, leftOut, checksums));
    this.#note(part, rows, isSame);
  }

  /** Notes the first keys that differ, and those that may. Returns whether none differ. */
  async #classifyPart(part: Part, leftOut: LeftOut, checksums: Both<Checksums>): Promise<boolean> {
    const table = part.table.name;
    const namedMax = this.#mends && MENDED_TABLES.includes(part.table) ? MENDED_MAX : NAMED_MAX;
    let named = this.#different.filter((one) => one.table === table).length;
    let isSame = true;
    for await (const keys of this.#differentKeys(part, leftOut, checksums)) {
      for (let at = 0; at < keys.length; at += CLASSIFIED_AT_ONCE) {
        const { different, apart } = await this.#classifier.classify(
          part.table,
          keys.slice(at, at + CLASSIFIED_AT_ONCE),
        );
        this.#noteApart(table, apart);
        if (different.length === 0) continue;
        isSame = false;
        const more = different.slice(0, namedMax - named);
        this.#different.push(...more.map((key) => ({ table, key })));
        named += more.length;
        if (named === namedMax) return false;
      }
    }
    return isSame;
  }

  async *#differentKeys(part: Part, leftOut: LeftOut, checksums: Both<Checksums>) {
    for await (const keys of differentKeys(this.#servers, part, leftOut, checksums)) {
      this.#signal.throwIfAborted();
      yield keys;
    }
  }

  #noteApart(table: string, keys: readonly DifferentKey[]): void {
    this.#apartCount += keys.length;
    this.#apart.push(...keys.slice(0, MENDED_MAX - this.#apart.length).map((key) => ({ table, key })));
  }

  #note({ table, partition }: Part, rows: Both<number>, isSame: boolean): void {
    this.#signal.throwIfAborted();
    this.#parts.push({ table: table.name, partition, rows, isSame });
  }
}

function requireFew(deletions: readonly UserDeletion[]): void {
  if (deletions.length <= DELETIONS_MAX) return;
  throw new Refused(
    `More than ${DELETIONS_MAX.toLocaleString('en')} deletions of users are on one of them alone, or are not erased yet.`,
  );
}

/** Returns the parts that are compared after the deletions, in their order: what is listed apart is found in the events. */
function partsOf(sizes: readonly TableSize[]): Part[] {
  const partitions = new Set(sizes.filter(({ table }) => table === EVENTS.name).map(({ partition }) => partition));
  const events = [...partitions].sort().map((partition) => ({ table: EVENTS, partition, buckets: 1 }));
  return [...events, ...OTHER_TABLES.map((table) => wholeTable(table, sizes))];
}

function wholeTable(table: ComparedTable, sizes: readonly TableSize[]): Part {
  const rows = sizes.filter((size) => size.table === table.name).reduce((sum, size) => sum + size.rows, 0);
  return { table, partition: '', buckets: table.isFolded ? bucketsFor(rows) : 1 };
}
