import uPlot from 'uplot';
import { axisFormat, formatNumber } from './format.ts';
import type { Line } from './series.ts';
import { DASHES, strokeOf } from './stroke.ts';

const HEIGHT = 320;

/** What is drawn. */
export interface Drawn {
  /** When each bucket begins. */
  readonly buckets: readonly string[];
  readonly interval: string;
  readonly timeZone: string;
  readonly lines: readonly Line[];
}

export interface Plot {
  remove(): void;
}

/**
 * Draws lines into an element, and draws them again when its width or the color scheme changes.
 *
 * @param onPoint is told at which bucket somebody points; `null`: at none
 */
export function drawPlot(element: HTMLElement, drawn: Drawn, onPoint: (index: number | null) => void): Plot {
  let plot: uPlot | undefined;
  const draw = () => {
    plot?.destroy();
    plot = new uPlot(plotOptions(element, drawn, onPoint), dataOf(drawn), element);
  };
  draw();
  const resized = new ResizeObserver(() => plot?.setSize({ width: element.clientWidth, height: HEIGHT }));
  resized.observe(element);
  const dark = matchMedia('(prefers-color-scheme: dark)');
  dark.addEventListener('change', draw);
  return {
    remove() {
      dark.removeEventListener('change', draw);
      resized.disconnect();
      plot?.destroy();
    },
  };
}

function dataOf({ buckets, lines }: Drawn): uPlot.AlignedData {
  const values = lines.flatMap(({ values, previous }) => [
    [...values],
    ...(previous ? [buckets.map((_, index) => previous.values[index] ?? null)] : []),
  ]);
  return [buckets.map((bucket) => Date.parse(bucket) / 1_000), ...values];
}

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
