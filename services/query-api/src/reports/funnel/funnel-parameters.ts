import type { InputError } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import { z } from 'zod';
import { STEPS_MAX, STEPS_MIN, WITHIN_DAYS_MAX } from '../../http/http.ts';
import {
  eventFilterable,
  type FieldFilter,
  type Filterable,
  listOf,
  notEmpty,
  type ParsedParameters,
  type PropertyFilter,
  parseParameters,
  refuseErrors,
  SEGMENT,
  SELECTION_DOCUMENTS,
  type SegmentFilter,
  type SelectionDocument,
  type SelectionField,
  selectionParameters,
} from '../../records/records.ts';
import { GROUP_KEYS, type GroupKey, groupErrors, groupKeyParameter, groupParameter } from '../group-key.ts';
import { type PeoplePage, type Person, pageOf, pageParameters, personParameter } from '../people.ts';
import { type ReportSelection, reportSelection } from '../report-selection.ts';

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A window: a whole number and its unit. */
const withinParameter = z
  .string()
  .regex(/^[1-9]\d{0,9}[smhd]$/, 'must be a whole number of s, m, h or d, such as 30m or 7d')
  .transform((text) => Number(text.slice(0, -1)) * (UNIT_MS[text.slice(-1)] as number))
  .refine((ms) => ms <= WITHIN_DAYS_MAX * (UNIT_MS['d'] as number), `must be at most ${WITHIN_DAYS_MAX}d`);

const WITHIN_MS_DEFAULT = 7 * 86_400_000;

/** The parameters of `GET /events/funnel`, except those of properties and operators. */
export const funnelParameters = {
  ...selectionParameters,
  steps: listOf(notEmpty)
    .refine(
      ({ length }) => length >= STEPS_MIN && length <= STEPS_MAX,
      `must be ${STEPS_MIN} to ${STEPS_MAX} event names`,
    )
    .meta({
      description: `${STEPS_MIN} to ${STEPS_MAX} event names in their order, separated by commas; \`\\,\` is a comma inside a name.`,
    }),
  by: personParameter('Who goes through the steps'),
  within: withinParameter.meta({
    override: { default: '7d' },
    description: `The window that begins with the first step, inclusive: a number with \`s\`, \`m\`, \`h\` or \`d\`, at most \`${WITHIN_DAYS_MAX}d\`.`,
  }),
  groupBy: groupKeyParameter.meta({
    description: `The field of the first step whose values define the groups: one of ${GROUP_KEYS}.`,
    examples: ['properties.plan'],
  }),
} as const;

/** A step of a funnel: an event name, and filters that only its events have to match. */
export interface FunnelStep {
  readonly event: string;
  readonly fields: readonly SegmentFilter[];
  readonly properties: readonly PropertyFilter<SelectionDocument>[];
}

/** A valid request for a funnel. */
export interface FunnelRequest {
  /** The events of all steps. */
  readonly selection: ReportSelection;
  readonly steps: readonly FunnelStep[];
  readonly by: Person;
  readonly withinMs: number;
  /** What the first step is grouped by. */
  readonly groupBy: GroupKey | undefined;
}

/** A document of the events of one step, counted from 1: `step2.properties`. */
type StepDocument = `step${number}.${SelectionDocument}`;

/** The parameter with the segments of one step. */
type StepSegment = `step${number}.segment`;

type FunnelField = SelectionField | StepSegment;

type AnyFilter = PropertyFilter<SelectionDocument | StepDocument>;

const STEP_NUMBERS = Array.from({ length: STEPS_MAX }, (_, index) => index + 1);

/** What events of a funnel can be filtered by, those of one step among them. */
export const funnelFilterable: Filterable<FunnelField, SelectionDocument | StepDocument> = {
  fields: {
    ...eventFilterable.fields,
    ...Object.fromEntries(STEP_NUMBERS.map((step) => [`step${step}.segment`, SEGMENT])),
  },
  documents: [...SELECTION_DOCUMENTS, ...STEP_NUMBERS.flatMap(stepDocuments)],
};

function stepDocuments(step: number): readonly StepDocument[] {
  return SELECTION_DOCUMENTS.map((document): StepDocument => `step${step}.${document}`);
}

const STEPS_REQUIRED: InputError = { path: 'steps', code: 'required', message: 'is required' };

/**
 * Parses the query of `GET /events/funnel`.
 *
 * @throws {Problem} `invalid_request`, naming every error
 */
export function parseFunnelRequest(query: QueryParameters): FunnelRequest {
  const { request, errors } = readFunnel(parseParameters(funnelParameters, funnelFilterable, query), query);
  refuseErrors(errors);
  return request;
}

/** The parameters of a funnel as they are parsed, others among them. */
type ParsedFunnel = ParsedParameters<typeof funnelParameters, FunnelField, SelectionDocument | StepDocument>;

/** Returns the request for a funnel. With an error it must not be used. */
export function readFunnel(
  parsed: ParsedFunnel,
  query: QueryParameters,
): { readonly request: FunnelRequest; readonly errors: InputError[] } {
  const { steps: events, by = 'user', within: withinMs = WITHIN_MS_DEFAULT, groupBy } = parsed.values;
  const filtersOf = (step: number | undefined) => parsed.properties.flatMap((filter) => withoutStep(filter, step));
  const fields = parsed.fields.filter((filter): filter is FieldFilter<SelectionField> => !isOfStep(filter));
  const { selection, errors } = reportSelection({ ...parsed, fields, properties: filtersOf(undefined) });
  if (query['steps'] === undefined) errors.push(STEPS_REQUIRED);
  else if (events) {
    const named = [
      ...parsed.properties.map(({ document, name }) => `${document}.${name}`),
      ...parsed.fields.map(({ field }) => field),
    ];
    errors.push(...named.flatMap((path) => errorOfStep(path, events.length)));
  }
  const steps = (events ?? []).map(
    (event, index): FunnelStep => ({
      ...{ event, fields: segmentsOf(parsed.fields, index + 1), properties: filtersOf(index + 1) },
    }),
  );
  return { request: { selection, steps, by, withinMs, groupBy }, errors };
}

/** Returns the filter if it is of this step; of all steps when it is `undefined`. */
function withoutStep({ document, ...rest }: AnyFilter, step: number | undefined): PropertyFilter<SelectionDocument>[] {
  const prefix = step === undefined ? '' : `step${step}.`;
  const found = SELECTION_DOCUMENTS.find((field) => document === `${prefix}${field}`);
  return found === undefined ? [] : [{ document: found, ...rest }];
}

function isOfStep({ field }: FieldFilter<FunnelField>): boolean {
  return field.startsWith('step');
}

function segmentsOf(fields: readonly FieldFilter<FunnelField>[], step: number): readonly SegmentFilter[] {
  const ofStep = fields.filter(({ field }) => field === `step${step}.segment`);
  return ofStep.map(({ condition }) => ({ field: 'segment', condition }));
}

/** @param path the parameter, with its name if it is a property */
function errorOfStep(path: string, count: number): InputError[] {
  const step = Number(/^step(\d+)[.]/.exec(path)?.[1] ?? 0);
  if (step <= count) return [];
  return [{ path, code: 'invalid', message: `there is no step ${step}; steps names ${count}` }];
}

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
  group: groupParameter,
  ...pageParameters,
} as const;

/** A valid request for the people behind a step of a funnel. */
export interface FunnelPeopleRequest {
  readonly funnel: FunnelRequest;
  /** How many steps they completed, at least. */
  readonly stepsMin: number;
  /** How many steps they completed, at most. */
  readonly stepsMax: number;
  /** The value of their group, for a funnel with `groupBy`. */
  readonly group: unknown;
  readonly page: PeoplePage;
}

const STEP_REQUIRED: InputError = { path: 'step', code: 'required', message: 'is required' };
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
  errors.push(...groupErrors(query, request.groupBy, group));
  const route = { name: 'funnel-people', workspace, query };
  const { page, selection } = pageOf(route, { limit, cursor }, request.selection, errors);
  refuseErrors(errors);
  const completed = isDropped ? { stepsMin: step - 1, stepsMax: step - 1 } : { stepsMin: step, stepsMax: count };
  return { funnel: { ...request, selection }, ...completed, group, page };
}
