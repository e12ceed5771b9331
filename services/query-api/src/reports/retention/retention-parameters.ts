import type { InputError } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import { z } from 'zod';
import { PERIODS_MAX } from '../../http/http.ts';
import {
  eventFilterable,
  type FieldFilter,
  type Filterable,
  numberParameter,
  type ParsedParameters,
  parseParameters,
  refuseErrors,
  type SelectionDocument,
  type SelectionField,
  selectionParameters,
  textParameter,
  timestampParameter,
} from '../../records/records.ts';
import { calendarUnit, timeZoneParameter, weekStartParameter } from '../calendar.ts';
import { GROUP_KEYS, type GroupKey, groupErrors, groupKeyParameter, groupParameter } from '../group-key.ts';
import { type PeoplePage, type Person, pageOf, pageParameters, personParameter } from '../people.ts';
import { BUCKET_PARAMETERS, type ReportSelection, reportBuckets, reportSelection } from '../report-selection.ts';

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
  by: personParameter('Who comes back'),
  groupBy: groupKeyParameter.meta({
    description: `The field of the event that makes the cohort, whose values define the groups: one of ${GROUP_KEYS}.`,
    examples: ['organization.properties.plan'],
  }),
} as const;

/** A valid request for retention. */
export interface RetentionRequest {
  /** The events of cohorts and of returns. */
  readonly selection: ReportSelection;
  /** What an event that makes a cohort has to match; nothing if it is empty. */
  readonly cohortFilters: readonly FieldFilter<SelectionField>[];
  readonly returnFilters: readonly FieldFilter<SelectionField>[];
  readonly interval: (typeof RETENTION_INTERVALS)[number];
  readonly periods: number;
  readonly timeZone: string;
  readonly by: Person;
  /** What the event that makes the cohort is grouped by. */
  readonly groupBy: GroupKey | undefined;
  /** When the local intervals of the range begin, in milliseconds since 1970. */
  readonly starts: readonly number[];
}

export const retentionFilterable: Filterable<SelectionField | 'returnEvent', SelectionDocument> = {
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
type ParsedRetention = ParsedParameters<typeof retentionParameters, SelectionField | 'returnEvent', SelectionDocument>;

/** Returns the request for retention. With an error it must not be used. */
export function readRetention(parsed: ParsedRetention): {
  readonly request: RetentionRequest;
  readonly errors: InputError[];
} {
  const { interval = 'day', periods = PERIODS_DEFAULT, timeZone = 'UTC', by = 'user', groupBy } = parsed.values;
  const cohortFilters: FieldFilter<SelectionField>[] = [];
  const returnFilters: FieldFilter<SelectionField>[] = [];
  const fields: FieldFilter<SelectionField>[] = [];
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
    ...{ interval, periods, timeZone, by, groupBy, starts },
  };
  return { request, errors };
}

/** The parameters of `GET /events/retention/people`, except those of properties and operators. */
export const retentionPeopleParameters = {
  ...retentionParameters,
  cohort: timestampParameter(
    (dayMs) => dayMs,
    'A time in the interval of the cohort, such as its `start`. ISO 8601, in UTC without a zone.',
  ),
  period: z
    .string()
    .regex(/^\d{1,9}$/, 'must be a whole number, 0 or more')
    .transform(Number)
    .meta({
      type: 'integer',
      minimum: 0,
      maximum: PERIODS_MAX - 1,
      description:
        'Those of the cohort who returned so many intervals later: a place in `returned`, less than `periods`. The whole cohort unless given.',
    }),
  group: groupParameter,
  ...pageParameters,
} as const;

/** A valid request for the people behind a number of retention. */
export interface RetentionPeopleRequest {
  readonly retention: RetentionRequest;
  /** The number of the cohort's interval, counted from 0. */
  readonly cohort: number;
  /** `undefined`: the whole cohort. */
  readonly period: number | undefined;
  /** The value of their group, for retention with `groupBy`. */
  readonly group: unknown;
  readonly page: PeoplePage;
}

const COHORT_REQUIRED: InputError = { path: 'cohort', code: 'required', message: 'is required' };
const OUTSIDE: InputError = { path: 'cohort', code: 'invalid', message: 'must be in an interval of the range' };

/**
 * Parses the query of `GET /events/retention/people`.
 *
 * @throws {Problem} `invalid_request`, naming every error
 */
export function parseRetentionPeopleRequest(query: QueryParameters, workspace: string): RetentionPeopleRequest {
  const parsed = parseParameters(retentionPeopleParameters, retentionFilterable, query);
  const { request, errors } = readRetention(parsed);
  const { cohort: cohortMs, period, group, limit, cursor } = parsed.values;
  const { starts, periods } = request;
  const cohort =
    cohortMs === undefined || cohortMs > request.selection.endMs
      ? -1
      : starts.findLastIndex((start) => start <= cohortMs);
  const isRangeKnown = !errors.some(({ path }) => BUCKET_PARAMETERS.includes(path));
  if (query['cohort'] === undefined) errors.push(COHORT_REQUIRED);
  else if (cohortMs !== undefined && cohort === -1 && isRangeKnown) errors.push(OUTSIDE);
  if (period !== undefined && period >= periods && !errors.some(({ path }) => path === 'periods')) {
    errors.push({ path: 'period', code: 'invalid', message: `must be less than periods, which is ${periods}` });
  }
  errors.push(...groupErrors(query, request.groupBy, group));
  const route = { name: 'retention-people', workspace, query };
  const { page, selection } = pageOf(route, { limit, cursor }, request.selection, errors);
  refuseErrors(errors);
  return { retention: { ...request, selection }, cohort, period, group, page };
}
