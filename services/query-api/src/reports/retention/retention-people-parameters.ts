import type { InputError } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import { z } from 'zod';
import { PERIODS_MAX } from '../../http/limits.ts';
import { timestampParameter } from '../../records/filters/parameter-schemas.ts';
import { parseParameters, refuseErrors } from '../../records/filters/parameters.ts';
import { type PeoplePage, pageOf, pageParameters } from '../people/people-page.ts';
import { BUCKET_PARAMETERS } from '../report-selection.ts';
import {
  type RetentionRequest,
  readRetention,
  retentionFilterable,
  retentionParameters,
} from './retention-parameters.ts';

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
  ...pageParameters,
} as const;

/** A valid request for the people behind a number of retention. */
export interface RetentionPeopleRequest {
  readonly retention: RetentionRequest;
  /** The number of the cohort's interval, counted from 0. */
  readonly cohort: number;
  /** `undefined`: the whole cohort. */
  readonly period: number | undefined;
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
  const { cohort: cohortMs, period, limit, cursor } = parsed.values;
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
  const route = { name: 'retention-people', workspace, query };
  const { page, selection } = pageOf(route, { limit, cursor }, request.selection, errors);
  refuseErrors(errors);
  return { retention: { ...request, selection }, cohort, period, page };
}
