import { useState } from 'preact/hooks';
import {
  dateIn,
  dayText,
  formatCount,
  formatNumber,
  formatShare,
  hrefOf,
  type Overview,
  startOfDate,
  timeZone,
} from '../base/base.ts';
import {
  type Change,
  changeText,
  comparableDay,
  directionOf,
  paramsOfChange,
  textOfValue,
  usualOf,
  valuesOf,
} from './changes.ts';

interface OverviewProps {
  readonly overview: Overview;
}

const ARROWS = { up: '▲', down: '▼', same: '' } as const;

interface ChangeOfProps {
  readonly value: number | null;
  readonly before: number | null;
}

/** By how much a number has changed: by color, by an arrow and in words. */
export function ChangeOf({ value, before }: ChangeOfProps) {
  const direction = directionOf(value, before);
  return (
    <span class={`change ${direction}`}>
      <span aria-hidden="true">{ARROWS[direction]}</span> {changeText(value, before)}
    </span>
  );
}

/** So many changes are shown until somebody asks for all. */
const CHANGES_SHOWN = 10;

/** What was unusual yesterday, the most unusual first, each with its line and its chart. */
export function WhatChanged({ overview }: OverviewProps) {
  const [isWhole, setIsWhole] = useState(false);
  const { changes, weeks, sampledShare } = overview;
  const shown = isWhole ? changes : changes.slice(0, CHANGES_SHOWN);
  const hasSampled = sampledShare !== null && sampledShare < 1 && changes.some(({ of }) => of !== null);
  return (
    <section aria-labelledby="changed">
      <h2 id="changed">What changed</h2>
      {weeks < 2 ? (
        <TooNew overview={overview} />
      ) : (
        <p class="muted">
          {changes.length === 0
            ? `Nothing was unusual beside the same weekday of the last ${weeks} weeks.`
            : `The most unusual first, beside the same weekday of the last ${weeks} weeks.`}
          {sampledShare === null && ' Values of properties could not be looked at in time.'}
          {hasSampled && ' Values of properties are of a sample.'}
        </p>
      )}
      {changes.length > 0 && (
        <ol class="changes">
          {shown.map((change) => (
            <ChangeRow key={JSON.stringify([change.event, change.property, change.value])} {...{ change, overview }} />
          ))}
        </ol>
      )}
      {changes.length > CHANGES_SHOWN && (
        <button type="button" aria-expanded={isWhole} onClick={() => setIsWhole(!isWhole)}>
          {isWhole ? 'Show fewer' : `Show all ${formatNumber(changes.length)}`}
        </button>
      )}
    </section>
  );
}

/** Says from when on there is something to compare with. */
function TooNew({ overview: { days, figures, timeZone: zone } }: OverviewProps) {
  const [{ values = [], today = null } = {}] = figures;
  // Without these it is not known when the first events were.
  if (values.includes(null)) return null;
  const counts = [...values, today];
  const first = counts.findIndex((count) => count !== null && count > 0);
  const start = dateIn(zone, Date.parse(days[0] ?? ''));
  const dayAt = (index: number) =>
    nameOfDay(new Date(startOfDate(zone, { ...start, day: start.day + index })).toISOString(), false);
  return (
    <p class="notice">
      This compares a day with the same weekday of at least two weeks. The first events are of {dayAt(first)}, so it
      begins on {dayAt(comparableDay(counts))}.
    </p>
  );
}

interface ChangeRowProps extends OverviewProps {
  readonly change: Change;
}

function ChangeRow({ change, overview }: ChangeRowProps) {
  const { event, property, value } = change;
  const values = valuesOf(change);
  const params = paramsOfChange(change);
  const dates = { ...datesOf(overview, overview.days.length), interval: 'day' };
  for (const [name, text] of Object.entries(dates)) params.set(name, text);
  return (
    <li>
      <ChangeOf value={values.at(-1) ?? null} before={usualOf(values, overview.weeks)} />
      <span>
        <a href={hrefOf(['explore'], params)}>
          <bdi>{event}</bdi>
          {property !== null && (
            <>
              {' '}
              with <bdi>{property}</bdi> = <bdi>{textOfValue(value)}</bdi>
            </>
          )}
        </a>
        <span class="muted">{explanationOf(change)}</span>
      </span>
      <Sparkline values={values.slice(1)} />
    </li>
  );
}

/** Says what was expected, and what there was. */
function explanationOf({ count, expected: { from, to }, of }: Change): string {
  const size = of?.at(-1);
  if (size === undefined) return `expected ${formatNumber(from)} to ${formatNumber(to)}, was ${formatNumber(count)}`;
  const [low, high, share] = [from, to, count].map((part) => formatShare(Math.min(1, part / size)));
  return `expected in ${low} to ${high}, was in ${share} of ${formatCount(size, 'event')}`;
}

/** The dates of the last whole days of an overview, as an address has them. */
export function datesOf({ days, endDate, timeZone: zone }: Overview, count: number) {
  const [startDate = '', last = ''] = [days.at(-count) ?? '', endDate].map((time) =>
    dayText(dateIn(zone, Date.parse(time))),
  );
  return { startDate, endDate: last };
}

/** What a day is called. */
export function nameOfDay(day: string, hasWeekday: boolean): string {
  return new Intl.DateTimeFormat(undefined, {
    ...{ timeZone: timeZone.value, day: 'numeric', month: 'long' },
    ...(hasWeekday && { weekday: 'long' }),
  }).format(new Date(day));
}

interface SparklineProps {
  /** The numbers from left to right; `null` is a gap. */
  readonly values: readonly (number | null)[];
}

const WIDTH = 100;
const HEIGHT = 24;

/** A line without axes, from zero up to its highest number. It says nothing that is not said beside it. */
export function Sparkline({ values }: SparklineProps) {
  const highest = Math.max(...values.map((value) => value ?? 0));
  const points = values.flatMap((value, index) => {
    if (value === null) return [];
    const x = (index * WIDTH) / Math.max(1, values.length - 1);
    const y = HEIGHT - (highest === 0 ? 0 : (value / highest) * HEIGHT);
    return [`${x.toFixed(2)},${y.toFixed(2)}`];
  });
  return (
    <svg class="sparkline" viewBox={`0 -1 ${WIDTH} ${HEIGHT + 2}`} preserveAspectRatio="none" aria-hidden="true">
      <polygon points={`0,${HEIGHT} ${points.join(' ')} ${WIDTH},${HEIGHT}`} />
      <polyline points={points.join(' ')} />
    </svg>
  );
}
