import type { BlockRange } from '@sluice/storage/protocol/block-ranges';
import type { Random } from '../world/random.ts';
import type { Keeper } from './keeper.ts';
import { type Call, type Result, requireNewestEpoch } from './statements.ts';
import type { StoredEvent } from './tables.ts';

/** A part of the events at a replica, as it was inserted. */
export interface Block {
  readonly partition: number;
  readonly number: number;
  /** What is left of its rows. */
  readonly rows: readonly StoredEvent[];
}

/** A row of `stream_order`. */
interface OrderRow {
  readonly record: number;
  readonly number: number;
  readonly ranges: readonly BlockRange[];
  /** When the replica was started that was told it, in milliseconds since 1970. */
  readonly startedAtMs: number;
}

/** A block whose number may be compared with a range. */
type Numbered = Pick<Block, 'partition' | 'number'>;

/** How likely two parts are merged that a look finds side by side. */
const MERGES = 0.2;

/** The table `stream_order` of a replica, and which parts it has merged. */
export class BlockOrder {
  readonly #keeper: Keeper;
  readonly #random: Random;
  readonly #rows: OrderRow[] = [];
  /** The pairs of blocks that are in one part. */
  readonly #merged = new Set<string>();

  constructor(keeper: Keeper, random: Random) {
    this.#keeper = keeper;
    this.#random = random;
  }

  /** Does what a statement does; undefined where it is none about the order. */
  run(name: string, { tables, parameters }: Omit<Call, 'session'>, at: Where): Result | undefined {
    switch (name) {
      case 'look-at-blocks': {
        const { partitions, firsts, lasts } = parameters as Record<string, number[]>;
        const { after } = parameters as { after: number };
        const newest = Math.max(0, ...this.#records.map(({ record }) => record).filter((record) => record >= after));
        const isKnown = ([partition, first, last]: BlockRange) =>
          (partitions ?? []).some(
            (own, index) => own === partition && (firsts?.[index] ?? 0) <= first && last <= (lasts?.[index] ?? 0),
          );
        const parts = this.#partsOf(at.blocks).filter((part) => !isKnown(part));
        return { rows: [{ parts, started_at: at.startedAtMs, newest }] };
      }
      case 'read-reached': {
        const rows = this.#rows.filter(({ record }) => record === 0);
        return {
          rows: rows
            .toSorted((one, other) => other.number - one.number)
            .slice(0, 1)
            .map(columnsOf),
        };
      }
      case 'read-records': {
        const { after, limit } = parameters as { after: number; limit: number };
        const rows = [...new Map(this.#records.map((row) => [row.record, row])).values()];
        const later = rows.filter(({ record }) => record > after);
        return {
          rows: later
            .toSorted((one, other) => one.record - other.record)
            .slice(0, limit)
            .map(columnsOf),
        };
      }
      case 'record-order': {
        requireNewestEpoch(tables, parameters);
        const given = parameters as unknown as Record<'records' | 'numbers', number[]> &
          Record<'partitions' | 'firsts' | 'lasts', number[][]> & { started_at: number };
        for (const [index, record] of given.records.entries()) {
          const [partitions, firsts, lasts] = [given.partitions[index], given.firsts[index], given.lasts[index]];
          const ranges = (partitions ?? []).map(
            (partition, at): BlockRange => [partition, firsts?.[at] ?? 0, lasts?.[at] ?? 0],
          );
          this.#rows.push({ record, number: given.numbers[index] ?? 0, ranges, startedAtMs: given.started_at });
        }
        return {};
      }
      default:
        return undefined;
    }
  }

  /** What it has reached, as it was told since it was started; 0: nothing. */
  reached(startedAtMs: number): number {
    const told = this.#rows.filter((row) => row.record === 0 && row.startedAtMs === startedAtMs);
    return Math.max(0, ...told.map(({ number }) => number));
  }

  /** Returns which number a block got after one and up to another one; 0: none. */
  numberOf({ partition, number }: Numbered, after: number, upTo: number): number {
    const found = this.#records.find(
      ({ record, ranges }) =>
        record > after &&
        record <= upTo &&
        ranges.some(([own, first, last]) => own === partition && first <= number && number <= last),
    );
    return found?.record ?? 0;
  }

  get #records(): readonly OrderRow[] {
    return this.#rows.filter(({ record }) => record > 0);
  }

  /** Merges leave out no number that may still come, or that is at other replicas alone. */
  #partsOf(blocks: readonly Block[]): BlockRange[] {
    const parts: BlockRange[] = [];
    for (const [partition, own] of Map.groupBy(blocks, (block) => block.partition)) {
      let before: number | undefined;
      for (const { number } of own.toSorted((one, other) => one.number - other.number)) {
        const last = parts.at(-1);
        if (before !== undefined && last && this.#areMerged(partition, before, number))
          parts.splice(-1, 1, [partition, last[1], number]);
        else parts.push([partition, number, number]);
        before = number;
      }
    }
    return parts;
  }

  #areMerged(partition: number, one: number, other: number): boolean {
    const pair = `${partition} ${one} ${other}`;
    if (this.#merged.has(pair)) return true;
    if (!this.#keeper.isNothingBetween(partition, one, other) || !this.#random.isTrue(MERGES)) return false;
    this.#merged.add(pair);
    return true;
  }
}

/** What a statement finds at its replica. */
interface Where {
  readonly blocks: readonly Block[];
  readonly startedAtMs: number;
}

function columnsOf({ number, ranges }: OrderRow) {
  return {
    number,
    partitions: ranges.map(([partition]) => partition),
    firsts: ranges.map(([, first]) => first),
    lasts: ranges.map(([, , last]) => last),
  };
}
