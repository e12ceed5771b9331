import { isNumber, toDouble } from '../base/base.ts';
import type { Line } from '../charts/charts.ts';
import type { Rows } from './rows.ts';

/** A result over time. Its times are of UTC, as those of SQL are. */
export interface TimeChart {
  readonly kind: 'time';
  readonly buckets: readonly string[];
  readonly interval: 'day' | 'hour' | 'minute';
  readonly lines: readonly Line[];
}

/** A number for each name. */
export interface BarChart {
  readonly kind: 'bars';
  readonly number: string;
  readonly bars: readonly { readonly label: string; readonly value: number; readonly shown: unknown }[];
}

/** More lines or bars than that are not drawn. */
const LINES_MAX = 9;
const BARS_MAX = 50;

const TIME = /^\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d:\d\d(?:\.\d+)?Z?)?$/;

/**
 * Returns how a result is drawn: numbers by a time in the first column as lines, also with a text in the second column, each of
 * which has a line; a number by anything else as bars. Returns `undefined` for a result that is no chart.
 */
export function chartOf({ columns, rows }: Rows): TimeChart | BarChart | undefined {
  const [first, second] = columns;
  const numbers = columns
    .slice(1)
    .filter((column) => rows.every((row) => isNumber(row[column]) || row[column] === null));
  if (first === undefined || second === undefined || rows.length < 2 || numbers.length === 0) return undefined;
  if (rows.every((row) => typeof row[first] === 'string' && TIME.test(row[first]))) {
    const group = numbers.includes(second) ? undefined : second;
    return timeChart(rows, first, group, numbers);
  }
  const [number] = numbers;
  const bars = rows.map((row) => ({
    label: textOf(row[first]),
    shown: row[number ?? ''],
    value: doubleOf(row[number ?? '']),
  }));
  const isDrawn =
    bars.length <= BARS_MAX && bars.every(({ value }) => value !== null && value >= 0) && numbers.includes(second);
  return isDrawn && number !== undefined ? { kind: 'bars', number, bars: bars as BarChart['bars'] } : undefined;
}

function timeChart(
  rows: Rows['rows'],
  time: string,
  group: string | undefined,
  numbers: readonly string[],
): TimeChart | undefined {
  const timeOf = (row: Rows['rows'][number]) => isoOf(String(row[time]));
  const buckets = [...new Set(rows.map(timeOf))].toSorted();
  const groups = group === undefined ? [''] : [...new Set(rows.map((row) => textOf(row[group])))];
  if (buckets.length < 2 || groups.length * numbers.length > LINES_MAX) return undefined;
  const cells = new Map(rows.map((row) => [`${timeOf(row)} ${group === undefined ? '' : textOf(row[group])}`, row]));
  // Several rows of a time and a group would hide each other.
  if (cells.size < rows.length) return undefined;
  const lines = groups.flatMap((name) =>
    numbers.map((number) => ({
      label: [name, ...(group === undefined || numbers.length > 1 ? [number] : [])].filter(Boolean).join(' / '),
      ...{ total: null, previous: undefined },
      values: buckets.map((bucket) => doubleOf(cells.get(`${bucket} ${name}`)?.[number])),
    })),
  );
  return { kind: 'time', buckets, interval: intervalOf(buckets), lines };
}

function intervalOf(buckets: readonly string[]): TimeChart['interval'] {
  if (buckets.every((bucket) => bucket.endsWith('T00:00:00.000Z'))) return 'day';
  return buckets.every((bucket) => bucket.endsWith(':00:00.000Z')) ? 'hour' : 'minute';
}

function isoOf(text: string): string {
  return new Date(text.length === 10 ? text : `${text.replace(' ', 'T').replace('Z', '')}Z`).toISOString();
}

function doubleOf(value: unknown): number | null {
  return isNumber(value) ? toDouble(value as number) : null;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
