import uPlot from 'uplot';
import { DASHES, strokeOf } from './legend.tsx';
import type { Line } from './series.ts';

/** How a chart draws its groups. */
export type Form = 'line' | 'bar' | 'stacked';

type Values = readonly (number | null)[];

/** What is drawn. */
export interface Drawn {
  /** When each bucket begins. */
  readonly buckets: readonly string[];
  readonly interval: string;
  readonly timeZone: string;
  readonly lines: readonly Line[];
  /** The lines that are not drawn, by index. The others keep their colors. */
  readonly hidden: ReadonlySet<number>;
  readonly form: Form;
  /** The buckets that are only partly in the range. */
  readonly partial: ReadonlySet<string>;
  /** Times that are marked with a line from top to bottom, in milliseconds since 1970. */
  readonly markers: readonly number[];
}

/** A line with its place among all lines, which its color follows from. */
type Shown = readonly [line: Line, index: number];

/** Returns the lines that are not hidden. */
export function shownLines({ lines, hidden }: Drawn): Shown[] {
  return lines.map((line, index): Shown => [line, index]).filter(([, index]) => !hidden.has(index));
}

/** More lines would be drawn over each other with those of the time before. */
const BEFORE_MAX = 3;

/** Returns the time before of a line, unless there are too many lines. */
export function drawnBefore({ previous }: Line, shown: readonly Shown[]): Line['previous'] {
  return shown.length <= BEFORE_MAX ? previous : undefined;
}

/** The colors that a chart is drawn in. */
export interface Palette {
  /** Returns a color of the style sheet by its name, such as `--text`, as a canvas takes it. */
  colorOf(name: string): string;
  /** Returns a fill that is hatched in a color of the style sheet. */
  hatchOf(name: string): CanvasPattern | string;
}

interface DrawnSeries {
  readonly series: readonly uPlot.Series[];
  readonly data: readonly (number | null)[][];
  /** The line that each series is of, by index. */
  readonly owners: readonly number[];
}

/**
 * Returns what uPlot draws for some lines: each one without its partial buckets, these again so that they do not look
 * whole, and the time before.
 *
 * @param ends when each bucket ends, in seconds since 1970
 */
export function drawnSeries(drawn: Drawn, ends: readonly number[], palette: Palette): DrawnSeries {
  const parts = drawn.form === 'line' ? linesOf(drawn, palette) : barsOf(drawn, ends, palette);
  return {
    series: parts.map(([series]) => series),
    data: parts.map(([, values]) => values),
    owners: parts.map(([, , owner]) => owner),
  };
}

type Part = readonly [series: uPlot.Series, values: (number | null)[], owner: number];

/** With more buckets, dots hide the line that they are on. */
const DOTTED_MAX = 15;

function linesOf(drawn: Drawn, { colorOf }: Palette): Part[] {
  const { buckets, partial } = drawn;
  const shown = shownLines(drawn);
  return shown.flatMap(([line, index]): Part[] => {
    const { color, dash: dashIndex } = strokeOf(index);
    const stroke = colorOf(`--series-${color}`);
    const dash = [...(DASHES[dashIndex] ?? [])];
    const whole = wholeOf(buckets, line.values, partial);
    const points = {
      size: 6,
      show: buckets.length <= DOTTED_MAX,
      // A number between two gaps has no line that shows it.
      filter: () => (buckets.length <= DOTTED_MAX ? null : lonely(whole)),
    };
    const dots = { size: 8, width: 2, stroke, fill: colorOf('--ground'), show: true };
    return [
      ...beforeOf(buckets, drawnBefore(line, shown), stroke, index),
      [{ stroke, dash, width: 2, points, ...(shown.length === 1 && { fill: faint(stroke) }) }, whole, index],
      // No line leads to a number that is not all there: it would look like a drop.
      ...(partial.size > 0
        ? [
            [
              { stroke, width: 0, points: dots, paths: () => null },
              partialOf(buckets, line.values, partial),
              index,
            ] as const,
          ]
        : []),
    ];
  });
}

/** Returns the indexes of the values that have a gap on either side. */
export function lonely(values: Values): number[] {
  const isGap = (index: number) => (values[index] ?? null) === null;
  return values.flatMap((value, index) => (value !== null && isGap(index - 1) && isGap(index + 1) ? [index] : []));
}

/** Returns a color of a canvas as the ground below its line. */
function faint(color: string): string {
  return color.replace(/^rgb\((.*)\)$/, 'rgba($1, 0.1)');
}

/** Returns the line of the time before, by index. Over bars it has a step for each. */
function beforeOf(
  buckets: readonly string[],
  previous: Line['previous'],
  stroke: string,
  owner: number,
  paths?: uPlot.Series.PathBuilder,
): Part[] {
  if (!previous) return [];
  const series = { stroke, dash: [3, 5], width: 1, points: { show: false }, ...(paths && { paths }) };
  return [[series, buckets.map((_, index) => previous.values[index] ?? null), owner]];
}

/** Returns the values of the buckets that are wholly in the range. */
export function wholeOf(buckets: readonly string[], values: Values, partial: ReadonlySet<string>): (number | null)[] {
  return buckets.map((bucket, index) => (partial.has(bucket) ? null : (values[index] ?? null)));
}

/** Returns the values of the other buckets. */
export function partialOf(buckets: readonly string[], values: Values, partial: ReadonlySet<string>): (number | null)[] {
  return buckets.map((bucket, index) => (partial.has(bucket) ? (values[index] ?? null) : null));
}

function barsOf(drawn: Drawn, ends: readonly number[], { colorOf, hatchOf }: Palette): Part[] {
  const { buckets, partial, form } = drawn;
  const isStacked = form === 'stacked';
  const shown = shownLines(drawn);
  const all = shown.map(([{ values }]) => values);
  const bars: readonly Bars[] = isStacked ? stack(all) : all.map((tops) => ({ tops }));
  return shown.flatMap(([line, index], place): Part[] => {
    const bar = bars[place] ?? { tops: [] };
    const name = `--series-${strokeOf(index).color}`;
    const fill = colorOf(name);
    const paths = isStacked ? barPaths(ends, 0, 1, bar.bases) : barPaths(ends, place, shown.length);
    const series = { fill, paths, width: 0, points: { show: false } };
    const before = isStacked ? undefined : drawnBefore(line, shown);
    return [
      [series, wholeOf(buckets, bar.tops, partial), index],
      ...(partial.size > 0
        ? [
            [
              { ...series, fill: () => hatchOf(name) as CanvasPattern },
              partialOf(buckets, bar.tops, partial),
              index,
            ] as const,
          ]
        : []),
      ...beforeOf(buckets, before, fill, index, uPlot.paths.stepped?.({ align: 1 })),
    ];
  });
}

/** The bars of one line: where each ends and, unless that is at zero, where it begins. */
interface Bars {
  readonly tops: Values;
  readonly bases?: readonly number[];
}

/** Puts the bars of each line on top of those of the lines before it. */
export function stack(lines: readonly Values[]): Bars[] {
  let bases: readonly number[] = lines[0]?.map(() => 0) ?? [];
  return lines.map((values) => {
    const from = bases;
    bases = values.map((value, index) => (from[index] ?? 0) + (value ?? 0));
    const sums = bases;
    return { tops: values.map((value, index) => (value === null ? null : (sums[index] ?? 0))), bases: from };
  });
}

/**
 * Returns what draws the bars of one of `count` lines, each in its share of its bucket.
 *
 * @param bases where the bars begin. Default: at zero
 */
function barPaths(
  ends: readonly number[],
  index: number,
  count: number,
  bases: readonly number[] = [],
): uPlot.Series.PathBuilder {
  return (plot, seriesIndex, first, last) => {
    const fill = new Path2D();
    for (let at = first; at <= last; at += 1) {
      const [start, end, value] = [plot.data[0][at], ends[at], plot.data[seriesIndex]?.[at]];
      if (start === undefined || end === undefined || value === null || value === undefined) continue;
      const left = plot.valToPos(start, 'x', true);
      const room = plot.valToPos(end, 'x', true) - left;
      const width = Math.max(1, (0.84 * room) / count);
      const base = plot.valToPos(bases[at] ?? 0, 'y', true);
      const top = plot.valToPos(value, 'y', true);
      fill.rect(left + 0.08 * room + index * width, Math.min(top, base), width, Math.abs(top - base));
    }
    return { stroke: null, fill, clip: null };
  };
}
