import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { axisFormat, formatBucket, formatNumber } from './format.ts';
import type { Line } from './series.ts';

const HEIGHT = 320;

const COLORS = 8;

/** Lines that share a color differ in their dashes. */
const DASHES = [[], [8, 4], [2, 3]] as const;

/** Returns the numbers of a line's color and dashes. The style sheet has the colors, and both for legends. */
export function strokeOf(index: number): { readonly color: number; readonly dash: number } {
  return { color: index % COLORS, dash: Math.floor(index / COLORS) % DASHES.length };
}

interface SeriesChartProps {
  /** When each bucket begins. */
  readonly buckets: readonly string[];
  readonly interval: string;
  readonly timeZone: string;
  readonly lines: readonly Line[];
  /** The buckets that are only partly in the range. Default: none. */
  readonly partial?: ReadonlySet<string>;
  /** What it shows, for those who do not see it. */
  readonly label: string;
}

/** Draws lines. A table must have the same numbers: this is a picture. */
export function SeriesChart({ buckets, interval, timeZone, lines, partial, label }: SeriesChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const [pointed, setPointed] = useState<number | null>(null);
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    setPointed(null);
    let plot: uPlot | undefined;
    const draw = () => {
      plot?.destroy();
      const options = plotOptions(element, { buckets, interval, timeZone, lines }, setPointed);
      plot = new uPlot(options, dataOf(buckets, lines), element);
    };
    draw();
    const resized = new ResizeObserver(() => plot?.setSize({ width: element.clientWidth, height: HEIGHT }));
    resized.observe(element);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', draw);
    return () => {
      dark.removeEventListener('change', draw);
      resized.disconnect();
      plot?.destroy();
    };
  }, [buckets, lines, interval, timeZone]);
  const bucket = pointed === null ? undefined : buckets[pointed];
  return (
    <figure>
      <div class="chart" role="img" aria-label={label} ref={place} />
      <figcaption>
        {bucket === undefined || pointed === null
          ? 'Point at the chart to read a time; the table below has all numbers.'
          : `${formatBucket(bucket, interval, timeZone)}${partial?.has(bucket) ? ' (partial)' : ''}: ${lines.map((line) => `${line.label} ${formatNumber(line.values[pointed] ?? null)}`).join(', ')}`}
      </figcaption>
    </figure>
  );
}

function dataOf(buckets: readonly string[], lines: readonly Line[]): uPlot.AlignedData {
  const values = lines.flatMap(({ values, previous }) => [
    [...values],
    ...(previous ? [buckets.map((_, index) => previous.values[index] ?? null)] : []),
  ]);
  return [buckets.map((bucket) => Date.parse(bucket) / 1_000), ...values];
}

type Drawn = Pick<SeriesChartProps, 'buckets' | 'interval' | 'timeZone' | 'lines'>;

function plotOptions(
  element: HTMLElement,
  { buckets, interval, lines, timeZone }: Drawn,
  onPoint: (index: number | null) => void,
): uPlot.Options {
  const axis = { stroke: cssColor(element, '--muted'), grid: { stroke: cssColor(element, '--line'), width: 1 } };
  const nameOf = axisFormat(interval, timeZone);
  const points = { show: buckets.length <= 60, size: 6 };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { drag: { x: false, y: false } },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1_000), timeZone),
    axes: [
      { ...axis, space: 100, values: (_plot, seconds) => seconds.map((second) => nameOf(new Date(second * 1_000))) },
      {
        ...axis,
        size: 70,
        ticks: { show: false },
        values: (_plot, values) => values.map((value) => formatNumber(value)),
      },
    ],
    scales: { y: { range: (_plot, min, max) => [Math.min(0, min ?? 0), Math.max(1, max ?? 1) * 1.05] } },
    series: [
      {},
      ...lines.flatMap(({ label, previous }, index) => {
        const { color, dash: dashIndex } = strokeOf(index);
        const stroke = cssColor(element, `--series-${color}`);
        const dash = [...(DASHES[dashIndex] ?? [])];
        return [
          { label, stroke, dash, width: 2, points },
          ...(previous ? [{ label: `${label}, before`, stroke, dash: [3, 5], width: 1, points: { show: false } }] : []),
        ];
      }),
    ],
    hooks: { setCursor: [({ cursor }) => onPoint(cursor.idx ?? null)] },
  };
}

/** Returns a color of the style sheet as a canvas takes it. */
function cssColor(element: HTMLElement, name: string): string {
  element.style.color = `var(${name})`;
  const { color } = getComputedStyle(element);
  element.style.color = '';
  return color;
}
