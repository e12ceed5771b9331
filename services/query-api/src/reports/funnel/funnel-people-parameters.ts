import type { InputError } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import { parseExactJson } from '@sluice/shared/text/json';
import { z } from 'zod';
import { STEPS_MAX } from '../../http/limits.ts';
import { parseParameters, refuseErrors } from '../../records/filters/parameters.ts';
import { type PeoplePage, pageOf, pageParameters } from '../people/people-page.ts';
import { type FunnelRequest, funnelFilterable, funnelParameters, readFunnel } from './funnel-parameters.ts';

/** The parameters of `GET /events/funnel/people`, except those of properties and operators. */
export const funnelPeopleParameters = {
  ...funnelParameters,
  step: z
    .string()
    .regex(/^[1-9]\d?$/, 'must be the number of a step, from 1')
    .transform(Number)
    .meta({
      type: 'integer',
      minimum: 1,
      maximum: STEPS_MAX,
      description: 'Those who completed this step and all before it. Counted from 1.',
    }),
  dropped: z.enum(['true', 'false'], 'must be true or false').meta({
    default: 'false',
    description: '`true`: those who completed the step before it, and not this one.',
  }),
  group: z
    .string()
    .transform((text, context): unknown => {
      try {
        return parseExactJson(text);
      } catch {
        context.addIssue({
          code: 'custom',
          message: 'must be JSON, as in groups of the funnel, such as "pro" or null',
        });
        return z.NEVER;
      }
    })
    .meta({
      description: 'With `groupBy`: the group that they are in, as JSON, as `groups` of the funnel has it.',
      examples: ['"pro"'],
    }),
  ...pageParameters,
} as const;

/** A valid request for the people behind a step of a funnel. */
export interface FunnelPeopleRequest {
  readonly funnel: FunnelRequest;
  /** How many steps they completed, at least. */
  readonly stepsMin: number;
  /** How many steps they completed, at most. */
  readonly stepsMax: number;
  /** Of a funnel with `groupBy`: the value of their group. */
  readonly group: unknown;
  readonly page: PeoplePage;
}

const STEP_REQUIRED: InputError = { path: 'step', code: 'required', message: 'is required' };
const NO_GROUP: InputError = { path: 'group', code: 'required', message: 'is required with groupBy' };
const NO_GROUP_BY: InputError = { path: 'groupBy', code: 'required', message: 'is required with group' };
const NO_TEXT: InputError = {
  path: 'group',
  code: 'invalid',
  message: 'must be a string or null, as all values of this groupBy',
};
const NOT_BEFORE_FIRST: InputError = {
  path: 'dropped',
  code: 'invalid',
  message: 'before the first step nobody drops out; take step 2 or a later one',
};

/**
 * Parses the query of `GET /events/funnel/people`.
 *
 * @throws {Problem} `invalid_request`, naming every error
 */
export function parseFunnelPeopleRequest(query: QueryParameters, workspace: string): FunnelPeopleRequest {
  const parsed = parseParameters(funnelPeopleParameters, funnelFilterable, query);
  const { request, errors } = readFunnel(parsed, query);
  const { step = 1, dropped, group, limit, cursor } = parsed.values;
  const isDropped = dropped === 'true';
  if (query['step'] === undefined) errors.push(STEP_REQUIRED);
  else if (isDropped && step === 1 && !errors.some(({ path }) => path === 'step')) errors.push(NOT_BEFORE_FIRST);
  const count = request.steps.length;
  if (step > count && count > 0) {
    errors.push({ path: 'step', code: 'invalid', message: `there is no step ${step}; steps names ${count}` });
  }
  if (query['groupBy'] !== undefined && query['group'] === undefined) errors.push(NO_GROUP);
  if (query['group'] !== undefined && query['groupBy'] === undefined) errors.push(NO_GROUP_BY);
  const isText = group === undefined || group === null || typeof group === 'string';
  if (request.groupBy && 'field' in request.groupBy && !isText) errors.push(NO_TEXT);
  const route = { name: 'funnel-people', workspace, query };
  const { page, selection } = pageOf(route, { limit, cursor }, request.selection, errors);
  refuseErrors(errors);
  const completed = isDropped ? { stepsMin: step - 1, stepsMax: step - 1 } : { stepsMin: step, stepsMax: count };
  return { funnel: { ...request, selection }, ...completed, group, page };
}
