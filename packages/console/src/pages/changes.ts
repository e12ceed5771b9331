import { type Overview, toDouble } from '../base/base.ts';
import { filterOf } from '../events/events.ts';

export type Change = Overview['changes'][number];

const PERCENT = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 0 });
const TIMES = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });
const WEEK_DAYS = 7;

/** Which way a number has gone. */
export type Direction = 'up' | 'down' | 'same';

export function directionOf(value: number | null, before: number | null): Direction {
  if (value === null || before === null || value === before) return 'same';
  return value > before ? 'up' : 'down';
}

/**
 * Says by how much a number differs from what it was: `new`, `gone`, `× 2.5` from twice as much on, `−65 %` below, and nothing
 * where it cannot be said.
 */
export function changeText(value: number | null, before: number | null): string {
  if (value === null || before === null) return '';
  if (value === before) return 'same';
  if (before === 0) return 'new';
  if (value === 0) return 'gone';
  if (value >= 2 * before) return `× ${TIMES.format(value / before)}`;
  const change = PERCENT.format(Math.abs(value / before - 1));
  return `${value > before ? '+' : '−'}${change}`;
}

/** Returns the numbers of a change by day: counts of an event, or the shares that a value has of its events. */
export function valuesOf({ values, of }: Change): readonly (number | null)[] {
  if (!of) return values;
  return values.map((value, day) => {
    const events = of[day] ?? 0;
    return events === 0 ? null : value / events;
  });
}

/** What a number was on the same weekday of the weeks that can be compared with, on average; `null` where it was not known. */
export function usualOf(values: readonly (number | null)[], weeks: number): number | null {
  const before = Array.from({ length: weeks }, (_, week) => values.at(-1 - WEEK_DAYS * (week + 1)) ?? null);
  const known = before.filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length;
}

/** Returns the parameters of the chart of a change. Where no filter can say the value, they are those of its event. */
export function paramsOfChange({
  event,
  property,
  value,
}: Pick<Change, 'event' | 'property' | 'value'>): URLSearchParams {
  const filter = property === null ? undefined : filterOf({ document: 'properties', names: [property] }, value);
  return new URLSearchParams([['event', event], ...(filter ? [filter] : [])]);
}

/** A value as a person reads it. */
export function textOfValue(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/**
 * Returns the index of the first day on which there will be something to compare with: two weeks and a day after the first whole
 * day with events, which is the one after the first event, unless there may be others before it.
 *
 * @param counts of all days, today's last
 */
export function comparableDay(counts: readonly (number | null)[]): number {
  const first = counts.findIndex((count) => (toDouble(count) ?? 0) > 0);
  return (first <= 0 ? 0 : first + 1) + 2 * WEEK_DAYS + 1;
}
