import { axisFormat, formatNumber } from '../base/base.ts';
import { endsOf, ticksOf } from './buckets.ts';
import { DASHES, strokeOf } from './legend.tsx';
import { type Drawn, drawnBefore, partialOf, shownLines, stack, wholeOf } from './plot-series.ts';

type Values = readonly (number | null)[];

const WIDTH = 960;
/** The edges of the area that numbers are drawn in, in pixels. */
const LEFT = 70;
const RIGHT = 940;
const TOP = 48;
const BOTTOM = 340;
const NAMES_TOP = BOTTOM + 52;
const NAME_HEIGHT = 22;
/** Names on the time axis are so many pixels apart, so that they do not touch. */
const TICK_WIDTH = 100;
const NUMBERS_MAX = 8;

/** The places of times and numbers in the picture. */
interface Scales {
  readonly x: (ms: number) => number;
  readonly y: (value: number) => number;
  readonly starts: readonly number[];
  readonly ends: readonly number[];
}

/**
 * Returns a chart as an SVG document, with its title, axes and the names of its lines.
 *
 * @param colorOf returns a color of the style sheet by its name, such as `--text`
 */
export function svgOf(drawn: Drawn, title: string, colorOf: (name: string) => string): string {
  const { form } = drawn;
  const shown = shownLines(drawn);
  const height = NAMES_TOP + NAME_HEIGHT * shown.length;
  const numbers = numbersOf(drawn);
  const scales = scalesOf(drawn, numbers);
  const text = `fill="${escaped(colorOf('--text'))}"`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}"`,
    ` role="img" font-family="system-ui, sans-serif" font-size="13"><title>${escaped(title)}</title>`,
    `<rect width="${WIDTH}" height="${height}" fill="${escaped(colorOf('--ground'))}"/>`,
    `<text x="12" y="26" font-size="15" font-weight="600" ${text}>${isolated(title)}</text>`,
    ...hatchesOf(drawn, colorOf),
    ...axesOf(drawn, scales, numbers, colorOf),
    ...(form === 'line' ? linesOf(drawn, scales, colorOf) : barsOf(drawn, scales, colorOf)),
    ...drawn.markers
      .map(scales.x)
      .filter((x) => x >= LEFT && x <= RIGHT)
      .map((x) => `<path d="M${x} ${TOP}V${BOTTOM}" stroke="${escaped(colorOf('--text'))}"/>`),
    ...shown.flatMap(([{ label, total }, index], place) => {
      const y = NAMES_TOP + NAME_HEIGHT * place;
      const { color, dash } = strokeOf(index);
      return [
        `<path d="M12 ${y - 4}H36" ${strokeAttributes(colorOf(`--series-${color}`), DASHES[dash] ?? [], form === 'line' ? 2 : 6)}/>`,
        `<text x="44" y="${y}" ${text}>${isolated(label)}: ${escaped(formatNumber(total))}</text>`,
      ];
    }),
    '</svg>',
  ].join('');
}

/** Returns the numbers that the axis names, among them the lowest and the highest that is drawn, with round steps. */
function numbersOf(chart: Drawn): number[] {
  const shown = shownLines(chart);
  const values = shown.map(([{ values }]) => values);
  const drawn = [
    ...(chart.form === 'stacked' ? stack(values).map(({ tops }) => tops) : values),
    ...(chart.form === 'stacked' ? [] : shown.map(([line]) => drawnBefore(line, shown)?.values ?? [])),
  ].flat();
  const [low, high] = drawn.reduce(
    ([least, most]: readonly [number, number], value) => [Math.min(least, value ?? 0), Math.max(most, value ?? 0)],
    [0, 0],
  );
  const rough = Math.max(high - low, 1) / NUMBERS_MAX;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5].find((one) => one * power >= rough) ?? 10) * power;
  const first = Math.floor(low / step);
  const count = Math.max(1, Math.ceil(high / step) - first);
  return Array.from({ length: count + 1 }, (_, index) => Number(((first + index) * step).toPrecision(12)));
}

function scalesOf({ buckets, interval, form }: Drawn, numbers: readonly number[]): Scales {
  const starts = buckets.map((bucket) => Date.parse(bucket));
  const ends = endsOf(buckets, interval);
  const first = starts[0] ?? 0;
  const last = (form === 'line' && starts.length > 1 ? starts.at(-1) : ends.at(-1)) ?? first + 1;
  const [low, high] = [numbers[0] ?? 0, numbers.at(-1) ?? 1];
  const rounded = (place: number) => Math.round(10 * place) / 10;
  return {
    ...{ starts, ends },
    x: (ms) => rounded(LEFT + ((RIGHT - LEFT) * (ms - first)) / (last - first)),
    y: (value) => rounded(BOTTOM - ((BOTTOM - TOP) * (value - low)) / (high - low)),
  };
}

function axesOf(drawn: Drawn, { x, y, starts }: Scales, numbers: readonly number[], colorOf: (name: string) => string) {
  const { buckets, interval, timeZone } = drawn;
  const [grid, muted] = [`stroke="${escaped(colorOf('--line'))}"`, `fill="${escaped(colorOf('--muted'))}"`];
  const nameOfTime = axisFormat(interval, timeZone);
  const times = ticksOf(buckets, interval, timeZone, (RIGHT - LEFT) / TICK_WIDTH).map((index) => starts[index] ?? 0);
  return [
    ...numbers.flatMap((number) => [
      `<path d="M${LEFT} ${y(number)}H${RIGHT}" ${grid}/>`,
      `<text x="${LEFT - 8}" y="${y(number) + 4}" text-anchor="end" ${muted}>${escaped(formatNumber(number))}</text>`,
    ]),
    ...times.flatMap((ms) => [
      `<path d="M${x(ms)} ${TOP}V${BOTTOM + 6}" ${grid}/>`,
      `<text x="${x(ms)}" y="${BOTTOM + 22}" text-anchor="middle" ${muted}>${escaped(nameOfTime(new Date(ms)))}</text>`,
    ]),
  ];
}

/** Returns the stripes of bars that are only partly in the range, so that they do not look like a drop. */
function hatchesOf(drawn: Drawn, colorOf: (name: string) => string): string[] {
  if (drawn.form === 'line' || drawn.partial.size === 0) return [];
  return shownLines(drawn).map(([, index]) => {
    const stroke = `stroke="${escaped(colorOf(`--series-${strokeOf(index).color}`))}" stroke-width="2"`;
    const pattern = `id="hatch-${index}" width="6" height="6" patternUnits="userSpaceOnUse"`;
    return `<pattern ${pattern}><path d="M-3 3L3 -3M0 6L6 0M3 9L9 3" ${stroke}/></pattern>`;
  });
}

function linesOf(drawn: Drawn, scales: Scales, colorOf: (name: string) => string): string[] {
  const { buckets, partial } = drawn;
  const shown = shownLines(drawn);
  return shown.flatMap(([line, index]) => {
    const { color, dash } = strokeOf(index);
    const stroke = colorOf(`--series-${color}`);
    const path = (of: Values, dashes: readonly number[], width: number) =>
      `<path d="${lineThrough(of, scales)}" ${strokeAttributes(stroke, dashes, width)}/>`;
    const before = drawnBefore(line, shown);
    const ring = `r="4" fill="${escaped(colorOf('--ground'))}" stroke="${escaped(stroke)}" stroke-width="2"`;
    return [
      path(wholeOf(buckets, line.values, partial), DASHES[dash] ?? [], 2),
      // No line leads to a number that is not all there: it would look like a drop.
      ...partialOf(buckets, line.values, partial).map((value, at) =>
        value === null ? '' : `<circle cx="${scales.x(scales.starts[at] ?? 0)}" cy="${scales.y(value)}" ${ring}/>`,
      ),
      ...(before ? [path(before.values.slice(0, buckets.length), [3, 5], 1)] : []),
    ];
  });
}

/** Returns a path that has a gap where there is no value, and a dot for a value between two gaps. */
function lineThrough(values: Values, { x, y, starts }: Scales): string {
  const isGap = (index: number) => (values[index] ?? null) === null;
  return values
    .map((value, index) => {
      if (value === null) return '';
      const point = `${x(starts[index] ?? 0)} ${y(value)}`;
      if (!isGap(index - 1)) return `L${point}`;
      return isGap(index + 1) ? `M${point}h0` : `M${point}`;
    })
    .join('');
}

function barsOf(drawn: Drawn, scales: Scales, colorOf: (name: string) => string): string[] {
  const { buckets, partial, form } = drawn;
  const { x, y, starts, ends } = scales;
  const isStacked = form === 'stacked';
  const shown = shownLines(drawn);
  const all = shown.map(([{ values }]) => values);
  const count = isStacked ? 1 : shown.length;
  const bars = isStacked ? stack(all) : all.map((tops) => ({ tops, bases: [] }));
  return shown.flatMap(([line, index], place) => {
    const { tops, bases = [] } = bars[place] ?? { tops: [] };
    const color = colorOf(`--series-${strokeOf(index).color}`);
    const bar = (at: number) => {
      const value = tops[at] ?? null;
      if (value === null) return '';
      const left = x(starts[at] ?? 0);
      const room = x(ends[at] ?? 0) - left;
      const width = Math.max(1, (0.84 * room) / count);
      const [from, to] = [y(bases[at] ?? 0), y(value)];
      const begin = left + 0.08 * room + (isStacked ? 0 : place * width);
      return `M${begin.toFixed(1)} ${from}h${width.toFixed(1)}V${to}h${(-width).toFixed(1)}z`;
    };
    const paths = (isPartial: boolean) =>
      buckets.map((bucket, at) => (partial.has(bucket) === isPartial ? bar(at) : '')).join('');
    const before = isStacked ? undefined : drawnBefore(line, shown);
    const steps = buckets.map((_, at) => {
      const value = before?.values[at] ?? null;
      return value === null ? '' : `M${x(starts[at] ?? 0)} ${y(value)}H${x(ends[at] ?? 0)}`;
    });
    return [
      `<path d="${paths(false)}" fill="${escaped(color)}"/>`,
      ...(partial.size > 0 ? [`<path d="${paths(true)}" fill="url(#hatch-${index})"/>`] : []),
      ...(before ? [`<path d="${steps.join('')}" ${strokeAttributes(color, [3, 5], 1)}/>`] : []),
    ];
  });
}

function strokeAttributes(color: string, dashes: readonly number[], width: number): string {
  const dashed = dashes.length > 0 ? ` stroke-dasharray="${dashes.join(' ')}"` : '';
  return `fill="none" stroke="${escaped(color)}" stroke-width="${width}" stroke-linecap="round"${dashed}`;
}

/** Returns a text as the content of an element or attribute, without the characters that XML does not have. */
export function escaped(text: string): string {
  return text
    .toWellFormed()
    .replace(/(?![\t\n\r])\p{Cc}|[\uFFFE\uFFFF]/gu, '\uFFFD')
    .replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** A name has so many characters at most. */
const NAME_MAX = 80;

/** Returns the beginning of a name as {@link escaped} does, in the direction of its own script. */
function isolated(name: string): string {
  return escaped(`\u2068${[...name.slice(0, 2 * NAME_MAX)].slice(0, NAME_MAX).join('')}\u2069`);
}
