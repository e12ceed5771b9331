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
    partial: new Set(),
    markers: [],
    lines,
    ...given,
  };
}

/** Returns the paths of a color, which stand for a line. */
function pathsOf(svg: string, color: string): string[] {
  return [...svg.matchAll(/<path d="([^"]*)" [^>]*?(?:stroke|fill)="(--[^"]*)"/g)]
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

test('bars stand beside each other or, stacked, on top of each other; a partial one is pale', () => {
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
  const [lower = '', pale = ''] = pathsOf(stacked, '--series-0');
  const [upper = ''] = pathsOf(stacked, '--series-1');
  expect(/V([\d.]+)/.exec(lower)?.[1]).toBe(/M[\d.]+ ([\d.]+)/.exec(upper)?.[1]);
  expect([...lower.matchAll(/M/g), ...pale.matchAll(/M/g)].length).toBe(5);
  expect(stacked).toContain('fill-opacity="0.4"');
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
