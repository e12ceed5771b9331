import { expect, test } from 'vitest';
import { escaped, svgOf } from './chart-svg.ts';
import type { Drawn } from './plot-series.ts';

const DAYS = ['2026-02-01', '2026-02-02', '2026-02-03', '2026-02-04', '2026-02-05'].map(
  (day) => `${day}T00:00:00.000Z`,
);

function drawn(values: readonly (number | null)[][], given: Partial<Drawn> = {}): Drawn {
  const lines = values.map((one, index) => ({ label: `line ${index}`, total: null, values: one, previous: undefined }));
  return {
    buckets: DAYS,
    interval: 'day',
    timeZone: 'UTC',
    form: 'line',
    hidden: new Set(),
    partial: new Set(),
    markers: [],
    lines,
    ...given,
  };
}

/** Returns the paths of a color, which stand for a line. */
function pathsOf(svg: string, color: string): string[] {
  return [...svg.matchAll(/<path d="([^"]*)" [^>]*?(?:stroke|fill)="((?:--|url)[^"]*)"/g)]
    .filter(([, d, found]) => found === color && d !== undefined && !d.startsWith('M12 '))
    .map(([, d = '']) => d);
}

const colorOf = (name: string) => name;

test('text from outside is text: no markup, and nothing that XML does not have', () => {
  const hostile = `</text><script>alert("1")</script>&'\0\u0007\uD800`;
  expect(escaped(hostile)).toBe(
    '&#60;/text&#62;&#60;script&#62;alert(&#34;1&#34;)&#60;/script&#62;&#38;&#39;\uFFFD\uFFFD\uFFFD',
  );
  const [line] = drawn([[1, 2, 3, 4, 5]]).lines;
  const svg = svgOf(drawn([], { lines: line ? [{ ...line, label: hostile }] : [] }), hostile, colorOf);
  expect(svg).not.toMatch(/<script|style=|href|\son[a-z]+=/);
  expect(svg).toContain(escaped(hostile));
});

test('a long name is cut between characters', () => {
  const svg = svgOf(drawn([]), '🙂'.repeat(1_000), colorOf);
  expect(svg).toContain(`>\u2068${'🙂'.repeat(80)}\u2069<`);
});

test('a line has a gap where there is no value, and a dot between two gaps', () => {
  const [path = ''] = pathsOf(svgOf(drawn([[4, null, 2, null, 0]]), '', colorOf), '--series-0');
  expect(path.match(/M[^M]*/g)?.map((part) => part.endsWith('h0'))).toEqual([true, true, true]);
  const [whole = ''] = pathsOf(svgOf(drawn([[4, 4, null, 2, 0]]), '', colorOf), '--series-0');
  expect(whole.replace(/[\d.]+ [\d.]+/g, '')).toBe('MLML');
});

test('a zero is on the axis and the highest value at the top, of negative ones too', () => {
  const [path = ''] = pathsOf(svgOf(drawn([[0, 8, 0, 8, 0]]), '', colorOf), '--series-0');
  expect(path.match(/[ML]([\d.]+) ([\d.]+)/g)).toEqual(['M70 340', 'L287.5 48', 'L505 340', 'L722.5 48', 'L940 340']);
  const [below = ''] = pathsOf(svgOf(drawn([[0, -4, 0, 4, 0]]), '', colorOf), '--series-0');
  expect(below).toBe('M70 194L287.5 340L505 194L722.5 48L940 194');
});

test('bars stand beside each other or, stacked, on top of each other; a partial one is hatched', () => {
  const values = [
    [1, 2, 3, 4, 5],
    [5, 4, 3, 2, null],
  ];
  const bars = svgOf(drawn(values, { form: 'bar' }), '', colorOf);
  const lefts = (svg: string, color: string) =>
    pathsOf(svg, color).map((path) => [...path.matchAll(/M([\d.]+)/g)].map(([, x]) => Number(x)));
  const [[first = []], [second = []]] = [lefts(bars, '--series-0'), lefts(bars, '--series-1')];
  expect([first.length, second.length]).toEqual([5, 4]);
  expect(second[0]).toBeGreaterThan(first[0] ?? 0);
  const stacked = svgOf(drawn(values, { form: 'stacked', partial: new Set(DAYS.slice(4)) }), '', colorOf);
  const [stripes = '', lower = ''] = pathsOf(stacked, '--series-0');
  const [hatched = ''] = pathsOf(stacked, 'url(#hatch-0)');
  const [, upper = ''] = pathsOf(stacked, '--series-1');
  expect(/V([\d.]+)/.exec(lower)?.[1]).toBe(/M[\d.]+ ([\d.]+)/.exec(upper)?.[1]);
  expect([lower, hatched].map((path) => [...path.matchAll(/M/g)].length)).toEqual([4, 1]);
  expect(stripes).not.toBe('');
});

test('no line leads to a partial bucket: it is a ring', () => {
  const svg = svgOf(drawn([[8, 8, 8, 8, 1]], { partial: new Set(DAYS.slice(4)) }), '', colorOf);
  expect(pathsOf(svg, '--series-0')).toEqual(['M70 48L287.5 48L505 48L722.5 48']);
  expect(svg.match(/<circle cx="940" cy="303.5"/g)).toHaveLength(1);
});

test('a hidden line is not drawn or named, the others keep their colors, and the axis is theirs', () => {
  const svg = svgOf(
    drawn(
      [
        [1000, 0, 0, 0, 0],
        [0, 8, 0, 8, 0],
      ],
      { hidden: new Set([0]) },
    ),
    '',
    colorOf,
  );
  expect(pathsOf(svg, '--series-0')).toEqual([]);
  expect(pathsOf(svg, '--series-1')).toEqual(['M70 340L287.5 48L505 340L722.5 48L940 340']);
  expect([svg.includes('line 0'), svg.includes('line 1')]).toEqual([false, true]);
});

test('the time before is drawn beside few lines', () => {
  const values = [1, 2, 3, 4, 5];
  const previous = { total: null, values };
  const withBefore = (count: number) => {
    const { lines } = drawn(Array.from({ length: count }, () => values));
    return svgOf(drawn([], { lines: lines.map((line) => ({ ...line, previous })) }), '', colorOf);
  };
  expect(pathsOf(withBefore(3), '--series-0')).toHaveLength(2);
  expect(pathsOf(withBefore(4), '--series-0')).toHaveLength(1);
});

test('a chart without numbers, with one bucket, or with huge ones has only finite places', () => {
  for (const one of [
    drawn([]),
    drawn([[null, null, null, null, null]]),
    drawn([[7]], { buckets: DAYS.slice(0, 1) }),
    drawn([[1e300, -1e300, 1e-300, 0, null]]),
    drawn([[0.1, 0.2, 0.3, 0, 0]], { form: 'bar' }),
  ]) {
    expect(svgOf(one, '', colorOf)).not.toMatch(/NaN|Infinity|undefined/);
  }
});
