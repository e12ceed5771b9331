import type { InputError } from '@sluice/shared/http/problem';
import { z } from 'zod';
import { BUCKETS_MAX, timeSchema } from '../http/http.ts';
import {
  type EventSelection,
  type ParsedParameters,
  type SelectionDocument,
  type SelectionField,
  START_AFTER_END,
  type selectionParameters,
} from '../records/records.ts';
import { bucketStarts, type CalendarUnit } from './calendar.ts';

/** The events that a report is about: its range has both ends. */
export interface ReportSelection extends EventSelection {
  readonly startMs: number;
  readonly endMs: number;
}

const START_REQUIRED: InputError = { path: 'startDate', code: 'required', message: 'is required' };

/**
 * Returns the selection of a report, whose parameters were parsed with {@link selectionParameters}: `endDate` is now when
 * left out. The errors are those of the parameters and of the range. With an error, the selection must not be used.
 */
export function reportSelection(
  parsed: ParsedParameters<typeof selectionParameters, SelectionField, SelectionDocument>,
  nowMs = Date.now(),
): { readonly selection: ReportSelection; readonly errors: InputError[] } {
  const { values, fields, properties } = parsed;
  const errors = [...parsed.errors];
  const { startDate: startMs, endDate: endMs = nowMs, identity } = values;
  const isNamed = errors.some(({ path }) => path === 'startDate');
  if (startMs === undefined && !isNamed) errors.push(START_REQUIRED);
  if (startMs !== undefined && startMs > endMs) errors.push(START_AFTER_END);
  return { selection: { identity, fields, properties, startMs: startMs ?? endMs, endMs }, errors };
}

const TOO_MANY_BUCKETS: InputError = {
  path: 'interval',
  code: 'too_many',
  message: `the range has more than ${BUCKETS_MAX} of these intervals; take a longer interval or a shorter range`,
};

/** What the buckets depend on. */
export const BUCKET_PARAMETERS: readonly string[] = ['interval', 'weekStart', 'timeZone', 'startDate', 'endDate'];

/** Returns when the buckets of a report begin. Adds an error when there are too many; then they must not be used. */
export function reportBuckets(
  unit: CalendarUnit,
  timeZone: string,
  { startMs, endMs }: Pick<ReportSelection, 'startMs' | 'endMs'>,
  errors: InputError[],
): readonly number[] {
  const starts = bucketStarts(unit, timeZone, startMs, endMs);
  const isRangeKnown = !errors.some(({ path }) => BUCKET_PARAMETERS.includes(path));
  if (isRangeKnown && starts.length > BUCKETS_MAX) errors.push(TOO_MANY_BUCKETS);
  return starts;
}

/** Describes what the responses of all reports end with. */
export function reportEndSchemas() {
  return {
    startDate: timeSchema.meta({ description: 'The first time that was applied, in UTC.' }),
    endDate: timeSchema.meta({ description: 'The last time that was applied, in UTC.' }),
    complete: z.boolean().meta({ description: 'Whether the query finished within its time.' }),
    exact: z.boolean().meta({ description: 'Whether every number is exact.' }),
  };
}

/** Returns what the response of a report ends with that is complete, or has nothing. */
export function reportEnd({ startMs, endMs }: ReportSelection, complete: boolean) {
  return {
    startDate: new Date(startMs).toISOString(),
    endDate: new Date(endMs).toISOString(),
    complete,
    exact: true,
  };
}
