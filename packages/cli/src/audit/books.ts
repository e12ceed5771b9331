import type { Kind } from './log-rows.ts';
import type { Place } from './records.ts';

export const HOUR_MICROS = 3_600_000_000;

/** Where the rows of an hour are. */
export interface Counts {
  accepted: number;
  stored: number;
  repeats: number;
  dead_letters: number;
  deleted: number;
  expired: number;
  waiting: number;
  given_up: number;
  unknown: number;
  missing: number;
  invented: number;
  duplicates: number;
}

/** What became of a row of the log. */
export type Fate = Exclude<keyof Counts, 'accepted' | 'invented' | 'duplicates'>;

export type Difference = 'missing' | 'invented' | 'duplicate';

/** The books of an hour of receipt. */
export interface Hour {
  readonly workspace: string;
  /** Its begin, in seconds since 1970. */
  readonly hour: number;
  readonly kind: Kind;
  readonly counts: Readonly<Counts>;
}

export const NO_COUNTS: Readonly<Counts> = {
  ...{ accepted: 0, stored: 0, repeats: 0, dead_letters: 0, deleted: 0, expired: 0, waiting: 0, given_up: 0 },
  ...{ unknown: 0, missing: 0, invented: 0, duplicates: 0 },
};

const KINDS: readonly Kind[] = ['events', 'changes', 'rejected'];

/** A row of the log. */
interface Row extends Place {
  /** In microseconds since 1970. */
  readonly received: number;
}

/** Called once with what became of each row of the log. */
export type OnRow = (kind: Kind, fate: Fate, place: Place) => void;

/** The books of all workspaces and hours. */
export class Books {
  readonly #onRow: OnRow | undefined;
  /** By workspace and kind, and then by hour: one of them is looked up for each row. */
  readonly #hours = new Map<string, Readonly<Record<Kind, Map<number, Counts>>>>();

  constructor(onRow?: OnRow) {
    this.#onRow = onRow;
  }

  count(workspace: string, row: Row, kind: Kind, fate: Fate): void {
    const counts = this.#at(workspace, row.received, kind);
    counts.accepted += 1;
    counts[fate] += 1;
    this.#onRow?.(kind, fate, row);
  }

  add(workspace: string, received: number, kind: Kind, difference: 'invented' | 'duplicates', rows: number): void {
    this.#at(workspace, received, kind)[difference] += rows;
  }

  /** All hours, by workspace, hour and kind. */
  get hours(): readonly Hour[] {
    const hours = [...this.#hours].flatMap(([workspace, kinds]) =>
      KINDS.flatMap((kind) =>
        [...kinds[kind]].map(([hour, counts]) => ({ workspace, hour: hour * 3_600, kind, counts })),
      ),
    );
    const texts = (one: string, other: string) => Number(one > other) - Number(one < other);
    return hours.sort(
      (one, other) => texts(one.workspace, other.workspace) || one.hour - other.hour || texts(one.kind, other.kind),
    );
  }

  get totals(): Readonly<Counts> {
    return sumOf(this.hours);
  }

  #at(workspace: string, received: number, kind: Kind): Counts {
    const hour = Math.floor(received / HOUR_MICROS);
    let kinds = this.#hours.get(workspace);
    if (!kinds) {
      kinds = { events: new Map(), changes: new Map(), rejected: new Map() };
      this.#hours.set(workspace, kinds);
    }
    const known = kinds[kind].get(hour);
    if (known) return known;
    const counts = { ...NO_COUNTS };
    kinds[kind].set(hour, counts);
    return counts;
  }
}

export function sumOf(hours: readonly Hour[]): Readonly<Counts> {
  const names = Object.keys(NO_COUNTS) as (keyof Counts)[];
  const sum = { ...NO_COUNTS };
  for (const { counts } of hours) for (const name of names) sum[name] += counts[name];
  return sum;
}

/** How many rows differ. */
export function differencesOf({ missing, invented, duplicates }: Readonly<Counts>): number {
  return missing + invented + duplicates;
}

/** Returns hours without those in which a replica that was looked at before differs more: the worst counts. */
export function withoutBetter(hours: readonly Hour[], before: readonly Hour[]): Hour[] {
  const keyOf = ({ workspace, hour, kind }: Hour) => `${hour}/${kind}/${workspace}`;
  const worst = new Map<string, number>();
  for (const one of before) worst.set(keyOf(one), Math.max(differencesOf(one.counts), worst.get(keyOf(one)) ?? 0));
  return hours.filter((one) => differencesOf(one.counts) >= (worst.get(keyOf(one)) ?? 0));
}
