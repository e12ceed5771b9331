/** What the median of a figure must not exceed, or must reach. */
export type Bar = { readonly atMost: number } | { readonly atLeast: number };

/** A cell in the table of a benchmark. */
export interface Figure {
  /** The heading of its table, where a benchmark has several. */
  readonly table?: string;
  readonly row: string;
  readonly column: string;
  /** `''` for a ratio. */
  readonly unit: string;
  /** The median of its rounds, where there are rounds. */
  readonly value: number;
  readonly lowest?: number;
  readonly highest?: number;
  readonly bar?: Bar;
  /** Why there is no value: it is shown in its place. */
  readonly absent?: string;
}

/** Numbers that say how much a benchmark does, such as its rounds, by their names, in the order of the command line. */
type Sizes = Readonly<Record<string, number>>;

/** The repository as it was at a commit. */
export interface OtherVersion {
  readonly commit: string;
  /** The folder. */
  readonly checkout: string;
}

/** What the command line chooses. */
export interface Choices {
  /** Another version, to be measured in turn with this one. */
  readonly other?: OtherVersion | undefined;
  /** The only parts to be measured. Default: all. */
  readonly only?: readonly string[] | undefined;
}

export interface Picture {
  /** Its name beside the page. */
  readonly file: string;
  readonly description: string;
  /** Returns an SVG, with the description as its title. */
  draw(figures: readonly Figure[], description: string): string;
}

export interface Benchmark<Size extends Sizes = Sizes> {
  readonly name: string;
  readonly title: string;
  /** A few sentences on how it is measured. */
  readonly method: string;
  /** The default size. */
  readonly size: Size;
  readonly picture?: Picture;
  /** Whether it can measure another version in turn with this one. */
  readonly comparesVersions?: boolean;
  /** The names of the parts of which some can be left out. */
  readonly parts?: readonly string[];
  /** @throws {VoidRun} when something was lost or refused, unless it counts that */
  measure(size: Size, choices: Choices): Promise<readonly Figure[]>;
}

/** An event was lost, repeated or refused, so the figures of the run mean nothing. */
export class VoidRun extends Error {
  override readonly name = 'VoidRun';

  constructor(reason: string) {
    super(`VOID: ${reason}`);
  }
}

/** Divides the values of each round. */
export function quotients(over: readonly number[], under: readonly number[]): number[] {
  return over.map((value, round) => value / (under[round] ?? Number.NaN));
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** The value that 99 % of the values do not exceed. */
export function p99(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.ceil(values.length * 0.99) - 1] ?? Number.NaN;
}

/** Makes a figure of the values of all rounds. */
export function figureOf(row: string, column: string, unit: string, values: readonly number[], bar?: Bar): Figure {
  const range = values.length > 1 && { lowest: Math.min(...values), highest: Math.max(...values) };
  return { row, column, unit, value: median(values), ...range, ...(bar && { bar }) };
}

export function meetsBar({ value, bar }: Figure): boolean {
  if (bar === undefined) return true;
  return 'atMost' in bar ? value <= bar.atMost : value >= bar.atLeast;
}
