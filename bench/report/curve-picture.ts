import type { Figure } from './benchmark.ts';

/** The heading of the table that is drawn. */
export const STEADY_RATES = 'Single events at a steady rate';

const WIDTH = 800;
const HEIGHT = 300;
const LEFT = 60;
const RIGHT = 210;
const TOP = 40;
const BOTTOM = 40;

/** Colors that are told apart by people who see few, on light and on dark pages: Okabe and Ito. */
const COLORS = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00'];

interface Line {
  readonly name: string;
  readonly values: readonly (number | undefined)[];
  readonly isBar?: boolean;
}

/** Draws the steady rates of the benchmark `curve`: cores by process, and latency. */
export function drawCurve(figures: readonly Figure[], description: string): string {
  const steady = figures.filter(({ table }) => table === STEADY_RATES);
  const rates = [...new Set(steady.map(({ column }) => column))];
  const rowOf = (row: string) => rates.map((rate) => steady.find((one) => one.row === row && one.column === rate));
  const lineOf = (row: string, name: string): Line => ({ name, values: rowOf(row).map((figure) => figure?.value) });
  const rows = [...new Set(steady.map(({ row }) => row))];
  const cores = rows.filter((row) => row.startsWith('cores, ')).map((row) => lineOf(row, row.slice('cores, '.length)));
  const barOfCores = rowOf('cores, together').map((figure) =>
    figure?.bar && 'atMost' in figure.bar ? figure.bar.atMost : undefined,
  );
  const latencies = rows.filter((row) => row.includes(' after, ')).map((row) => lineOf(row, row.replace(' after', '')));
  const panels = [
    panel('Cores', rates, [...cores, { name: 'bar of all together', values: barOfCores, isBar: true }], 0, linear),
    panel('Milliseconds', rates, latencies, HEIGHT, logarithmic),
  ];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${2 * HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<title>${description}</title>`,
    `<rect width="${WIDTH}" height="${2 * HEIGHT}" fill="#fff"/>`,
    ...panels,
    '</svg>\n',
  ].join('\n');
}

interface Axis {
  readonly ticks: readonly number[];
  /** How far up a value stands, from 0 to 1. */
  readonly shareOf: (value: number) => number;
}

/** @param highest the largest of the values to be drawn */
type MakeAxis = (highest: number) => Axis;

function linear(highest: number): Axis {
  const end = niceAbove(highest);
  return { ticks: [0, 0.25, 0.5, 0.75, 1].map((share) => share * end), shareOf: (value) => value / end };
}

/** From 1 to a power of ten. */
function logarithmic(highest: number): Axis {
  const powers = Math.max(1, Math.ceil(Math.log10(highest)));
  const ticks = Array.from({ length: powers + 1 }, (_, power) => 10 ** power);
  return { ticks, shareOf: (value) => Math.log10(Math.max(1, value)) / powers };
}

/** Lines over the rates, which stand at equal distances. */
function panel(
  unit: string,
  rates: readonly string[],
  lines: readonly Line[],
  top: number,
  makeAxis: MakeAxis,
): string {
  const axis = makeAxis(Math.max(...lines.flatMap(({ values }) => values.filter((value) => value !== undefined))));
  const x = (index: number) => round(LEFT + (index * (WIDTH - LEFT - RIGHT)) / Math.max(1, rates.length - 1));
  const y = (value: number) => round(top + HEIGHT - BOTTOM - axis.shareOf(value) * (HEIGHT - TOP - BOTTOM));
  return [
    `<text x="${LEFT}" y="${top + TOP - 16}" font-weight="bold">${unit}</text>`,
    ...axis.ticks.map(
      (tick) =>
        `<path d="M${LEFT} ${y(tick)}H${WIDTH - RIGHT}" stroke="#ddd"/>` +
        `<text x="${LEFT - 8}" y="${y(tick) + 4}" text-anchor="end">${round(tick)}</text>`,
    ),
    ...rates.map(
      (rate, index) => `<text x="${x(index)}" y="${top + HEIGHT - BOTTOM + 18}" text-anchor="middle">${rate}</text>`,
    ),
    ...lines.map(({ name, values, isBar }, index) => {
      const color = isBar ? '#555' : COLORS[index % COLORS.length];
      const points = values.flatMap((value, at) => (value === undefined ? [] : [`${x(at)},${y(value)}`]));
      const stroke = `stroke="${color}" stroke-width="2"${isBar ? ' stroke-dasharray="4 4"' : ''}`;
      const labelY = top + TOP + 16 * index;
      return (
        `<polyline points="${points.join(' ')}" fill="none" ${stroke}/>` +
        `<path d="M${WIDTH - RIGHT + 16} ${labelY - 4}h20" ${stroke}/>` +
        `<text x="${WIDTH - RIGHT + 42}" y="${labelY}">${name}</text>`
      );
    }),
  ].join('\n');
}

/** The next of 1, 2 and 5 times a power of ten. */
function niceAbove(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 5].find((step) => step * power >= value) ?? 10) * power;
}

function round(value: number): number {
  return Number(value.toFixed(2));
}
