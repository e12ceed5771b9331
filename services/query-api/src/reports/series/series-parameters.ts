import type { InputError } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import { z } from 'zod';
import { BUCKETS_MAX, GROUP_KEYS_MAX, GROUPS_MAX } from '../../http/http.ts';
import {
  eventFilterable,
  listOf,
  notEmpty,
  numberParameter,
  parseParameters,
  refuseErrors,
  selectionParameters,
} from '../../records/records.ts';
import {
  bucketStarts,
  bucketStartsBefore,
  CALENDAR_INTERVALS,
  type CalendarUnit,
  calendarUnit,
  timeZoneParameter,
  weekStartParameter,
} from '../calendar.ts';
import { GROUP_KEYS, type GroupKey, groupKeyParameter, nameOfKey, PROPERTIES, propertyOfPath } from '../group-key.ts';
import { type ReportSelection, reportBuckets, reportSelection } from '../report-selection.ts';

const INTERVALS = [...CALENDAR_INTERVALS, 'none'] as const;

type Interval = (typeof INTERVALS)[number];

const GROUPS_DEFAULT = 10;

/** The fields that the distinct counts count. */
export const DISTINCT = { users: 'userId', organizations: 'groupId' } as const;

/** Measures of a numeric property. */
const NUMERIC = ['sum', 'avg', 'min', 'max', 'p50', 'p90', 'p95', 'p99'] as const;

/** What a series shows of its events. */
export type Measure =
  | { readonly kind: 'count' | keyof typeof DISTINCT }
  | { readonly kind: (typeof NUMERIC)[number]; readonly property: string };

const MEASURES = ['count', ...Object.keys(DISTINCT), ...NUMERIC.map((kind) => `${kind}:${PROPERTIES}<name>`)].join(
  ', ',
);

/** `count`, `users`, `organizations`, or a numeric measure with its property: `sum:properties.amount`. */
export const measureParameter = z
  .string()
  .transform((text, context): Measure => {
    if (text === 'count' || text === 'users' || text === 'organizations') return { kind: text };
    const kind = NUMERIC.find((one) => text.startsWith(`${one}:`));
    const message = `must be one of ${MEASURES}`;
    if (kind) return { kind, property: propertyOfPath(text.slice(kind.length + 1), context, message) };
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  })
  .meta({
    default: 'count',
    examples: ['count', 'users', 'sum:properties.amount'],
    description: `One of ${MEASURES}. \`users\` and \`organizations\` count those that are distinct and not null. Values that are not JSON numbers are left out; numbers are 64-bit floats. Quantiles are interpolated between two values.`,
  });

/** Returns a measure as a request names it. */
export function nameOfMeasure(measure: Measure): string {
  return 'property' in measure ? `${measure.kind}:${PROPERTIES}${measure.property}` : measure.kind;
}

/** The parameters of `GET /events/series`, except those of properties and operators. */
export const seriesParameters = {
  ...selectionParameters,
  interval: z.enum(INTERVALS, `must be one of ${INTERVALS.join(', ')}`).meta({
    default: 'day',
    description: `How long a bucket is; \`none\` is one bucket for the whole range. At most ${BUCKETS_MAX} buckets.`,
  }),
  timeZone: timeZoneParameter,
  weekStart: weekStartParameter,
  measure: measureParameter,
  groupBy: listOf(notEmpty)
    .pipe(z.array(groupKeyParameter))
    .refine((keys) => keys.length <= GROUP_KEYS_MAX, `must name at most ${GROUP_KEYS_MAX}`)
    .refine((keys) => new Set(keys.map(nameOfKey)).size === keys.length, 'must name each one once')
    .meta({
      description: `The fields whose values define the groups: one or two of ${GROUP_KEYS}, separated by commas.`,
      examples: ['event', 'properties.plan,event'],
    }),
  groups: numberParameter(
    GROUPS_MAX,
    GROUPS_DEFAULT,
    'How many groups: the largest by the measure over the whole range, then by the bytes of their keys; for `avg`, `min`, `max` and quantiles by the number of their events.',
  ),
  compare: z.enum(['previous'], 'must be previous').meta({
    description:
      'The same for the time before, which is as long: as many calendar intervals when the range begins and ends with one, else as many milliseconds.',
  }),
} as const;

/** The buckets of one range. */
export interface SeriesRange {
  readonly startMs: number;
  readonly endMs: number;
  /** When each bucket begins, ascending; the first can lie before `startMs`. */
  readonly buckets: readonly number[];
}

/** A valid request for a series. */
export interface SeriesRequest {
  readonly selection: ReportSelection;
  readonly interval: Interval;
  readonly timeZone: string;
  readonly measure: Measure;
  readonly groupBy: readonly GroupKey[];
  readonly groups: number;
  readonly range: SeriesRange;
  /** The time to compare with, if the request asks for it. */
  readonly previous: SeriesRange | undefined;
}

const NO_GROUPS: InputError = { path: 'groups', code: 'invalid', message: 'needs groupBy' };

/**
 * Parses the query of `GET /events/series`.
 *
 * @throws {Problem} `invalid_request`, naming every error
 */
export function parseSeriesRequest(query: QueryParameters): SeriesRequest {
  const parsed = parseParameters(seriesParameters, eventFilterable, query);
  const { selection, errors } = reportSelection(parsed);
  const { interval = 'day', timeZone = 'UTC', measure = { kind: 'count' }, groupBy = [], groups } = parsed.values;
  if (query['groups'] && !query['groupBy']) errors.push(NO_GROUPS);
  const { startMs, endMs } = selection;
  const unit = interval === 'none' ? undefined : calendarUnit(interval, parsed.values.weekStart);
  const buckets = unit ? reportBuckets(unit, timeZone, selection, errors) : [startMs];
  refuseErrors(errors);
  const range = { startMs, endMs, buckets };
  const previous = parsed.values.compare && previousRange(unit, timeZone, range);
  return { selection, interval, timeZone, measure, groupBy, groups: groups ?? GROUPS_DEFAULT, range, previous };
}

function previousRange(
  unit: CalendarUnit | undefined,
  timeZone: string,
  { startMs, endMs, buckets }: SeriesRange,
): SeriesRange {
  const before = { startMs: startMs - (endMs + 1 - startMs), endMs: startMs - 1 };
  if (!unit) return { ...before, buckets: [before.startMs] };
  if (buckets[0] === startMs && isStart(unit, timeZone, endMs + 1)) {
    const starts = bucketStartsBefore(unit, timeZone, startMs, buckets.length);
    return { ...before, startMs: starts[0] as number, buckets: starts };
  }
  return { ...before, buckets: bucketStarts(unit, timeZone, before.startMs, before.endMs) };
}

function isStart(unit: CalendarUnit, timeZone: string, ms: number): boolean {
  return bucketStarts(unit, timeZone, ms, ms)[0] === ms;
}

/** Whether a measure counts things: only then can its numbers be estimates. */
export function isDistinct({ kind }: Measure): boolean {
  return kind in DISTINCT;
}

/** Whether groups are ordered by the measure. Those that do not grow with the group are ordered by their events. */
export function ranksGroups(measure: Measure): boolean {
  return !('property' in measure) || measure.kind === 'sum';
}

/** What a measure is where there are no events. */
export function emptyValue(measure: Measure): 0 | null {
  return ranksGroups(measure) ? 0 : null;
}
