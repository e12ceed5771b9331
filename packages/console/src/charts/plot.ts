import uPlot from 'uplot';
import { axisFormat, formatNumber, theme } from '../base/base.ts';
import { endsOf, ticksOf } from './buckets.ts';
import { strokeOf } from './legend.tsx';
import { type Drawn, drawnSeries, type Palette, shownLines } from './plot-series.ts';

/** The size of text on the page that sizes of the axes are for, in pixels: a wall has larger text. */
const TEXT_SIZE = 15;

/** Returns how much larger than usual text is. */
function scaleOfText(): number {
  return Number.parseFloat(getComputedStyle(document.documentElement).fontSize) / TEXT_SIZE;
}

/** Returns the room for a chart in CSS pixels, which the style sheet gives. */
function sizeOf({ clientWidth, clientHeight }: HTMLElement) {
  return { width: clientWidth, height: clientHeight };
}

/** Names on the time axis are so many pixels apart, so that they do not touch. */
const TICK_WIDTH = 100;

/** How much is seen of what is faded. */
const FADED = 0.15;

/** A drag of fewer pixels is a click. */
const DRAG_MIN = 5;

/** A bucket that is pointed at. */
export interface Pointed {
  readonly index: number;
  /** How far it is from the left, in CSS pixels. */
  readonly left: number;
  /** Whether it is in the right half. */
  readonly isRight: boolean;
}

interface Listener {
  /** Somebody points at a bucket, or at none any more. */
  onPoint(pointed: Pointed | undefined): void;
  /** Somebody clicks on a bucket. */
  onChoose(index: number): void;
  /** Somebody has dragged from one bucket to another. */
  onZoom?: ((first: number, last: number) => void) | undefined;
}

export interface Plot {
  /** Points at a bucket. */
  point(index: number): void;
  /** Fades all lines but one; `undefined`: none. */
  highlight(line: number | undefined): void;
  /** Returns a picture with a title and the names of the lines. */
  toPng(title: string): Promise<Blob>;
  /** Returns the same picture as SVG. */
  toSvg(title: string): Promise<Blob>;
  remove(): void;
}

/** Draws lines or bars into an element, and draws them again when its size or the color scheme changes. */
export function drawPlot(element: HTMLElement, drawn: Drawn, listener: Listener): Plot {
  let owners: readonly number[] = [];
  const create = () => {
    const { options, data, owners: own } = plotOf(element, drawn, listener);
    owners = own;
    return new uPlot(options, data, element);
  };
  let plot = create();
  const draw = () => {
    plot.destroy();
    plot = create();
  };
  const resized = new ResizeObserver(() => plot.setSize(sizeOf(element)));
  resized.observe(element);
  const dark = matchMedia('(prefers-color-scheme: dark)');
  dark.addEventListener('change', draw);
  let colors = theme.value;
  const stopTheme = theme.subscribe((chosen) => {
    if (chosen !== colors) draw();
    colors = chosen;
  });
  return {
    point(index) {
      const start = plot.data[0][index];
      if (start === undefined) return;
      // Bars are pointed at in their middle.
      const end = drawn.form === 'line' ? start : (endsOf(drawn.buckets, drawn.interval)[index] ?? 0) / 1_000;
      plot.setCursor({ left: plot.valToPos((start + end) / 2, 'x'), top: 0 });
    },
    highlight(line) {
      for (const [index, owner] of owners.entries()) {
        const series = plot.series[index + 1];
        if (series) series.alpha = line === undefined || owner === line ? 1 : FADED;
      }
      plot.redraw(false);
    },
    toPng: (title) => pictureOf(element, plot.ctx.canvas, title, drawn),
    async toSvg(title) {
      const { svgOf } = await import('./chart-svg.ts');
      return new Blob([svgOf(drawn, title, (name) => cssColor(element, name))], { type: 'image/svg+xml' });
    },
    remove() {
      stopTheme();
      dark.removeEventListener('change', draw);
      resized.disconnect();
      plot.destroy();
    },
  };
}

function plotOf(element: HTMLElement, drawn: Drawn, { onPoint, onChoose, onZoom }: Listener) {
  const { buckets, interval, timeZone, form } = drawn;
  const colorOf = (name: string) => cssColor(element, name);
  const palette: Palette = { colorOf, hatchOf: (name) => hatched(colorOf(name)) };
  const scale = scaleOfText();
  const axis = { stroke: colorOf('--muted'), font: `${12 * scale}px system-ui, sans-serif`, ticks: { show: false } };
  const nameOf = axisFormat(interval, timeZone);
  const starts = buckets.map((bucket) => Date.parse(bucket) / 1_000);
  const ends = endsOf(buckets, interval).map((ms) => ms / 1_000);
  const { series, data, owners } = drawnSeries(drawn, ends, palette);
  const options: uPlot.Options = {
    ...sizeOf(element),
    legend: { show: false },
    cursor: { y: false, drag: { x: onZoom !== undefined, y: false, setScale: false } },
    axes: [
      {
        ...axis,
        size: 32 * scale,
        grid: { show: false },
        splits: ({ width }) =>
          ticksOf(buckets, interval, timeZone, width / (TICK_WIDTH * scale)).map((index) => starts[index] ?? 0),
        values: (_plot, seconds) => seconds.map((second) => nameOf(new Date(second * 1_000))),
      },
      {
        ...axis,
        size: 60 * scale,
        space: 30 * scale,
        grid: { stroke: colorOf('--line'), width: 1 },
        values: (_plot, values) => values.map((value) => formatNumber(value)),
      },
    ],
    scales: {
      x: { range: [starts[0] ?? 0, (form === 'line' ? undefined : ends.at(-1)) ?? endOfAxis(starts, ends)] },
      y: { range: (_plot, min, max) => [Math.min(0, min ?? 0), Math.max(1, max ?? 1) * 1.05] },
    },
    series: [{}, ...series.map((one) => ({ ...one, width: (one.width ?? 0) * scale }))],
    hooks: {
      draw: [(plot) => drawMarkers(plot, drawn.markers, colorOf('--text'))],
      ready: [(plot) => followClicks(plot, form, onChoose)],
      setCursor: [(plot) => onPoint(typeof plot.cursor.idx === 'number' ? pointedOf(plot, form) : undefined)],
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
  return { options, data: [starts, ...data] as uPlot.AlignedData, owners };
}

function pointedOf(plot: uPlot, form: Drawn['form']): Pointed {
  const left = plot.cursor.left ?? 0;
  return {
    index: bucketAt(plot, left, form),
    left: left + plot.bbox.left / devicePixelRatio,
    isRight: left > plot.bbox.width / devicePixelRatio / 2,
  };
}

function followClicks(plot: uPlot, form: Drawn['form'], onChoose: (index: number) => void): void {
  let pressedAt = 0;
  plot.over.addEventListener('mousedown', ({ clientX }) => {
    pressedAt = clientX;
  });
  plot.over.addEventListener('click', ({ clientX }) => {
    // Whoever has dragged has zoomed.
    if (Math.abs(clientX - pressedAt) < DRAG_MIN) onChoose(bucketAt(plot, plot.cursor.left ?? 0, form));
  });
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

/** Returns a fill of stripes in a color, for bars that are only partly in the range: they are no drop. */
function hatched(color: string): CanvasPattern | string {
  const size = Math.round(6 * devicePixelRatio);
  const tile = new OffscreenCanvas(size, size);
  const ctx = tile.getContext('2d');
  if (!ctx) return color;
  ctx.strokeStyle = color;
  ctx.lineWidth = size / 4;
  for (const shift of [-size, 0, size]) {
    ctx.moveTo(shift, size);
    ctx.lineTo(shift + size, 0);
  }
  ctx.stroke();
  return ctx.createPattern(tile, 'repeat') ?? color;
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

function pictureOf(element: HTMLElement, chart: HTMLCanvasElement, title: string, drawn: Drawn): Promise<Blob> {
  const lines = shownLines(drawn);
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
  for (const [place, [{ label, total }, index]] of lines.entries()) {
    const y = top + NAME_HEIGHT * (place + 0.5);
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
