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
  readonly form: Form;
  /** The buckets that are only partly in the range. */
  readonly partial: ReadonlySet<string>;
  /** Times that are marked with a line from top to bottom, in milliseconds since 1970. */
  readonly markers: readonly number[];
}

interface DrawnSeries {
  readonly series: readonly uPlot.Series[];
  readonly data: readonly (number | null)[][];
}

/**
 * Returns what uPlot draws for some lines: each one without its partial buckets, these again so that they do not look
 * whole, and the time before.
 *
 * @param ends when each bucket ends, in seconds since 1970
 */
export function drawnSeries(drawn: Drawn, ends: readonly number[], colorOf: (name: string) => string): DrawnSeries {
  const parts = drawn.form === 'line' ? linesOf(drawn, colorOf) : barsOf(drawn, ends, colorOf);
  return { series: parts.map(([series]) => series), data: parts.map(([, values]) => values) };
}

type Part = readonly [series: uPlot.Series, values: (number | null)[]];

function linesOf({ buckets, lines, partial }: Drawn, colorOf: (name: string) => string): Part[] {
  const points = { show: buckets.length <= 60, size: 6 };
  return lines.flatMap(({ values, previous }, index): Part[] => {
    const { color, dash: dashIndex } = strokeOf(index);
    const stroke = colorOf(`--series-${color}`);
    const dash = [...(DASHES[dashIndex] ?? [])];
    const dotted: Part = [{ stroke, dash: [1, 4], width: 2, points }, partialOf(buckets, values, partial)];
    return [
      [{ stroke, dash, width: 2, points }, wholeOf(buckets, values, partial)],
      ...(partial.size > 0 ? [dotted] : []),
      ...beforeOf(buckets, previous, stroke),
    ];
  });
}

/** Returns the line of the time before, by index. Over bars it has a step for each. */
function beforeOf(
  buckets: readonly string[],
  previous: Line['previous'],
  stroke: string,
  paths?: uPlot.Series.PathBuilder,
): Part[] {
  if (!previous) return [];
  const series = { stroke, dash: [3, 5], width: 1, points: { show: false }, ...(paths && { paths }) };
  return [[series, buckets.map((_, index) => previous.values[index] ?? null)]];
}

/** Returns the values of the buckets that are wholly in the range. */
export function wholeOf(buckets: readonly string[], values: Values, partial: ReadonlySet<string>): (number | null)[] {
  return buckets.map((bucket, index) => (partial.has(bucket) ? null : (values[index] ?? null)));
}

/** Returns the values of the other buckets and of those next to them, to which a line leads. */
export function partialOf(buckets: readonly string[], values: Values, partial: ReadonlySet<string>): (number | null)[] {
  const isPartial = (index: number) => partial.has(buckets[index] ?? '');
  return buckets.map((_, index) =>
    isPartial(index) || isPartial(index - 1) || isPartial(index + 1) ? (values[index] ?? null) : null,
  );
}

function barsOf(
  { buckets, lines, partial, form }: Drawn,
  ends: readonly number[],
  colorOf: (name: string) => string,
): Part[] {
  const isStacked = form === 'stacked';
  const all = lines.map(({ values }) => values);
  const bars: readonly Bars[] = isStacked ? stack(all) : all.map((tops) => ({ tops }));
  return bars.flatMap((bar, index): Part[] => {
    const fill = colorOf(`--series-${strokeOf(index).color}`);
    const paths = isStacked ? barPaths(ends, 0, 1, bar.bases) : barPaths(ends, index, lines.length);
    const series = { fill, paths, width: 0, points: { show: false } };
    const pale = buckets.map((bucket, at) => (partial.has(bucket) ? (bar.tops[at] ?? null) : null));
    return [
      [series, wholeOf(buckets, bar.tops, partial)],
      [{ ...series, alpha: 0.4 }, pale],
      ...(isStacked ? [] : beforeOf(buckets, lines[index]?.previous, fill, uPlot.paths.stepped?.({ align: 1 }))),
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
