import type { Figure } from './benchmark.ts';

/** The heading of the table that is drawn. */
export const STEADY_RATES = 'Single events at a steady rate';

const WIDTH = 760;
const HEIGHT = 300;
const LEFT = 60;
const RIGHT = 170;
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
export function drawCurve(figures: readonly Figure[]): string {
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
    panel('Cores', rates, [...cores, { name: 'bar of all together', values: barOfCores, isBar: true }], 0),
    panel('Milliseconds', rates, latencies, HEIGHT),
  ];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${2 * HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${2 * HEIGHT}" fill="#fff"/>`,
    ...panels,
    '</svg>\n',
  ].join('\n');
}

/** Lines over the rates, which stand at equal distances. */
function panel(unit: string, rates: readonly string[], lines: readonly Line[], top: number): string {
  const highest = niceAbove(Math.max(...lines.flatMap(({ values }) => values.filter((value) => value !== undefined))));
  const x = (index: number) => round(LEFT + (index * (WIDTH - LEFT - RIGHT)) / Math.max(1, rates.length - 1));
  const y = (value: number) => round(top + HEIGHT - BOTTOM - (value / highest) * (HEIGHT - TOP - BOTTOM));
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((share) => share * highest);
  return [
    `<text x="${LEFT}" y="${top + TOP - 16}" font-weight="bold">${unit}</text>`,
    ...ticks.map(
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
