import type { InputError } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import { z } from 'zod';
import { PERIODS_MAX } from '../../http/limits.ts';
import type { DocumentField, FilterField } from '../../records/events/event-columns.ts';
import { eventFilterable, selectionParameters } from '../../records/events/event-selection.ts';
import type { FieldFilter } from '../../records/filters/operators.ts';
import { numberParameter, textParameter } from '../../records/filters/parameter-schemas.ts';
import {
  type Filterable,
  type ParsedParameters,
  parseParameters,
  refuseErrors,
} from '../../records/filters/parameters.ts';
import { calendarUnit, timeZoneParameter, weekStartParameter } from '../calendar.ts';
import { type ReportSelection, reportBuckets, reportSelection } from '../report-selection.ts';

const RETENTION_INTERVALS = ['day', 'week', 'month'] as const;

const PERIODS_DEFAULT = 12;

/** The parameters of `GET /events/retention`, except those of properties and operators. */
export const retentionParameters = {
  ...selectionParameters,
  event: textParameter('What makes a cohort: the first event of this name in the range. Any event unless given.'),
  returnEvent: textParameter('What counts as a return: an event of this name. The same as `event` unless given.'),
  interval: z.enum(RETENTION_INTERVALS, `must be one of ${RETENTION_INTERVALS.join(', ')}`).meta({
    default: 'day',
    description: 'The length of a cohort and of a period.',
  }),
  periods: numberParameter(
    PERIODS_MAX,
    PERIODS_DEFAULT,
    'How many intervals to count returns in, that of the cohort among them.',
  ),
  timeZone: timeZoneParameter,
  weekStart: weekStartParameter,
} as const;

/** A valid request for retention. */
export interface RetentionRequest {
  /** The events of cohorts and of returns. */
  readonly selection: ReportSelection;
  /** What an event that makes a cohort has to match; nothing if it is empty. */
  readonly cohortFilters: readonly FieldFilter<FilterField>[];
  readonly returnFilters: readonly FieldFilter<FilterField>[];
  readonly interval: (typeof RETENTION_INTERVALS)[number];
  readonly periods: number;
  readonly timeZone: string;
  /** When the local intervals of the range begin, in milliseconds since 1970. */
  readonly starts: readonly number[];
}

export const retentionFilterable: Filterable<FilterField | 'returnEvent', DocumentField> = {
  fields: { ...eventFilterable.fields, returnEvent: eventFilterable.fields.event },
  documents: eventFilterable.documents,
};

/**
 * Parses the query of `GET /events/retention`.
 *
 * @throws {Problem} `invalid_request`, naming every error
 */
export function parseRetentionRequest(query: QueryParameters): RetentionRequest {
  const { request, errors } = readRetention(parseParameters(retentionParameters, retentionFilterable, query));
  refuseErrors(errors);
  return request;
}

/** The parameters of retention as they are parsed, others among them. */
type ParsedRetention = ParsedParameters<typeof retentionParameters, FilterField | 'returnEvent', DocumentField>;

/** Returns the request for retention. With an error it must not be used. */
export function readRetention(parsed: ParsedRetention): {
  readonly request: RetentionRequest;
  readonly errors: InputError[];
} {
  const { interval = 'day', periods = PERIODS_DEFAULT, timeZone = 'UTC' } = parsed.values;
  const cohortFilters: FieldFilter<FilterField>[] = [];
  const returnFilters: FieldFilter<FilterField>[] = [];
  const fields: FieldFilter<FilterField>[] = [];
  for (const { field, condition } of parsed.fields) {
    if (field === 'event') cohortFilters.push({ field, condition });
    else if (field === 'returnEvent') returnFilters.push({ field: 'event', condition });
    else fields.push({ field, condition });
  }
  const { selection, errors } = reportSelection({ ...parsed, fields });
  const starts = reportBuckets(calendarUnit(interval, parsed.values.weekStart), timeZone, selection, errors);
  const request = {
    selection,
    cohortFilters,
    returnFilters: returnFilters.length === 0 ? cohortFilters : returnFilters,
    ...{ interval, periods, timeZone, starts },
  };
  return { request, errors };
}
