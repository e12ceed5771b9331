import uPlot from 'uplot';
import { axisFormat, formatNumber } from '../base/base.ts';
import { endsOf, ticksOf } from './buckets.ts';
import { strokeOf } from './legend.tsx';
import { type Drawn, drawnSeries } from './plot-series.ts';
import type { Line } from './series.ts';

const HEIGHT = 320;

/** Names on the time axis are so many pixels apart, so that they do not touch. */
const TICK_WIDTH = 100;

/** A drag of fewer pixels is a click. */
const DRAG_MIN = 5;

interface Listener {
  /** Somebody points at a bucket. */
  onPoint(index: number): void;
  /** Somebody has dragged from one bucket to another. */
  onZoom?: ((first: number, last: number) => void) | undefined;
}

export interface Plot {
  /** Points at a bucket. */
  point(index: number): void;
  /** Returns a picture with a title and the names of the lines. */
  toPng(title: string): Promise<Blob>;
  /** Returns the same picture as SVG. */
  toSvg(title: string): Promise<Blob>;
  remove(): void;
}

/** Draws lines or bars into an element, and draws them again when its width or the color scheme changes. */
export function drawPlot(element: HTMLElement, drawn: Drawn, listener: Listener): Plot {
  const create = () => {
    const { options, data } = plotOf(element, drawn, listener);
    return new uPlot(options, data, element);
  };
  let plot = create();
  const draw = () => {
    plot.destroy();
    plot = create();
  };
  const resized = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }));
  resized.observe(element);
  const dark = matchMedia('(prefers-color-scheme: dark)');
  dark.addEventListener('change', draw);
  return {
    point(index) {
      const start = plot.data[0][index];
      if (start === undefined) return;
      // Bars are pointed at in their middle.
      const end = drawn.form === 'line' ? start : (endsOf(drawn.buckets, drawn.interval)[index] ?? 0) / 1_000;
      plot.setCursor({ left: plot.valToPos((start + end) / 2, 'x'), top: 0 });
    },
    toPng: (title) => pictureOf(element, plot.ctx.canvas, title, drawn.lines),
    async toSvg(title) {
      const { svgOf } = await import('./chart-svg.ts');
      return new Blob([svgOf(drawn, title, (name) => cssColor(element, name))], { type: 'image/svg+xml' });
    },
    remove() {
      dark.removeEventListener('change', draw);
      resized.disconnect();
      plot.destroy();
    },
  };
}

function plotOf(element: HTMLElement, drawn: Drawn, { onPoint, onZoom }: Listener) {
  const { buckets, interval, timeZone, form } = drawn;
  const colorOf = (name: string) => cssColor(element, name);
  const axis = { stroke: colorOf('--muted'), grid: { stroke: colorOf('--line'), width: 1 } };
  const nameOf = axisFormat(interval, timeZone);
  const starts = buckets.map((bucket) => Date.parse(bucket) / 1_000);
  const ends = endsOf(buckets, interval).map((ms) => ms / 1_000);
  const { series, data } = drawnSeries(drawn, ends, colorOf);
  const options: uPlot.Options = {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { drag: { x: onZoom !== undefined, y: false, setScale: false } },
    axes: [
      {
        ...axis,
        splits: ({ width }) =>
          ticksOf(buckets, interval, timeZone, width / TICK_WIDTH).map((index) => starts[index] ?? 0),
        values: (_plot, seconds) => seconds.map((second) => nameOf(new Date(second * 1_000))),
      },
      {
        ...axis,
        size: 70,
        ticks: { show: false },
        values: (_plot, values) => values.map((value) => formatNumber(value)),
      },
    ],
    scales: {
      x: { range: [starts[0] ?? 0, (form === 'line' ? undefined : ends.at(-1)) ?? endOfAxis(starts, ends)] },
      y: { range: (_plot, min, max) => [Math.min(0, min ?? 0), Math.max(1, max ?? 1) * 1.05] },
    },
    series: [{}, ...series],
    hooks: {
      drawClear: [(plot) => shadePartial(plot, drawn, ends, colorOf)],
      draw: [(plot) => drawMarkers(plot, drawn.markers, colorOf('--text'))],
      setCursor: [
        (plot) => typeof plot.cursor.idx === 'number' && onPoint(bucketAt(plot, plot.cursor.left ?? 0, form)),
      ],
      setSelect: [
        (plot) => {
          const { left, width } = plot.select;
          if (width < DRAG_MIN) return;
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          onZoom?.(bucketAt(plot, left, form), bucketAt(plot, left + width, form));
        },
      ],
    },
  };
  return { options, data: [starts, ...data] as uPlot.AlignedData };
}

/** Returns the bucket at a place: of a line the nearest point, otherwise the one whose bars are there. */
function bucketAt(plot: uPlot, left: number, form: Drawn['form']): number {
  if (form === 'line') return plot.posToIdx(left);
  const seconds = plot.posToVal(left, 'x');
  return Math.max(
    0,
    [...plot.data[0]].findLastIndex((start) => start <= seconds),
  );
}

/** Returns where the time axis of lines ends, in seconds. A chart of one point has the room of its bucket. */
function endOfAxis(starts: readonly number[], ends: readonly number[]): number {
  return (starts.length > 1 ? starts.at(-1) : ends.at(-1)) ?? 1;
}

/** Shows that a bucket is only partly in the range, so that it does not look like a drop. */
function shadePartial(
  plot: uPlot,
  { buckets, partial, form }: Drawn,
  ends: readonly number[],
  colorOf: (name: string) => string,
): void {
  const { ctx, bbox } = plot;
  ctx.save();
  for (const [index, bucket] of buckets.entries()) {
    if (!partial.has(bucket)) continue;
    // A line draws a bucket as a point, and the stretch that leads to the point belongs to it.
    const neighbor = index === 0 ? index + 1 : index - 1;
    const [from, to] =
      form === 'line' ? [plot.data[0][neighbor], plot.data[0][index]] : [plot.data[0][index], ends[index]];
    if (from === undefined || to === undefined) continue;
    const [left, right] = [plot.valToPos(from, 'x', true), plot.valToPos(to, 'x', true)].toSorted((a, b) => a - b);
    ctx.fillStyle = colorOf('--raised');
    ctx.fillRect(left ?? 0, bbox.top, (right ?? 0) - (left ?? 0), bbox.height);
  }
  ctx.restore();
}

function drawMarkers(plot: uPlot, markers: readonly number[], color: string): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = color;
  ctx.fillStyle = color;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([]);
  for (const marker of markers) {
    const x = Math.round(plot.valToPos(marker / 1_000, 'x', true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.fillRect(x - 3 * devicePixelRatio, bbox.top, 6 * devicePixelRatio, 6 * devicePixelRatio);
  }
  ctx.restore();
}

/** The heights of a picture's title and of each name below it, in CSS pixels. */
const TITLE_HEIGHT = 36;
const NAME_HEIGHT = 22;

/** A name in a picture has so many characters at most. */
const NAME_MAX = 80;

function pictureOf(
  element: HTMLElement,
  chart: HTMLCanvasElement,
  title: string,
  lines: readonly Line[],
): Promise<Blob> {
  const scale = devicePixelRatio;
  const canvas = document.createElement('canvas');
  canvas.width = chart.width;
  canvas.height = chart.height + scale * (TITLE_HEIGHT + NAME_HEIGHT * lines.length + 8);
  const ctx = canvas.getContext('2d') as CanvasRenderingContext2D;
  ctx.fillStyle = cssColor(element, '--ground');
  ctx.fillRect(0, 0, canvas.width, canvas.height);
  ctx.drawImage(chart, 0, scale * TITLE_HEIGHT);
  ctx.scale(scale, scale);
  ctx.textBaseline = 'middle';
  ctx.fillStyle = cssColor(element, '--text');
  ctx.font = '600 15px system-ui, sans-serif';
  ctx.fillText(title, 12, TITLE_HEIGHT / 2);
  ctx.font = '13px system-ui, sans-serif';
  const top = TITLE_HEIGHT + chart.height / scale;
  for (const [index, { label, total }] of lines.entries()) {
    const y = top + NAME_HEIGHT * (index + 0.5);
    ctx.fillStyle = cssColor(element, `--series-${strokeOf(index).color}`);
    ctx.fillRect(12, y - 2, 24, 4);
    ctx.fillStyle = cssColor(element, '--text');
    ctx.fillText(`${label.slice(0, NAME_MAX)}: ${formatNumber(total)}`, 44, y);
  }
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('The picture is too large for this browser.'))));
  });
}

/** Returns a color of the style sheet as a canvas takes it. */
function cssColor(element: HTMLElement, name: string): string {
  element.style.color = `var(${name})`;
  const { color } = getComputedStyle(element);
  element.style.color = '';
  return color;
}
