import { type InputError, parseBody } from '@sluice/shared/http/problem';
import { type QueryParameters, queryOf } from '@sluice/shared/http/query-string';
import { z } from 'zod';
import {
  BEHAVIOUR_DAYS_MAX,
  BEHAVIOUR_TIMES_MAX,
  SEGMENT_CONDITIONS_MAX,
  SEGMENTS_OF_REQUEST_MAX,
} from '../../http/http.ts';
import type { FieldFilter, OperandKind } from '../filters/operators.ts';
import { type Filterable, parseParameters, refuseErrors } from '../filters/parameters.ts';
import type { PropertyFilter } from '../filters/property-filter.ts';
import { OWNER_TIME, type Owner } from './owners.ts';

// A segment is users or organizations by what is known of them now, and by what they did. A request names it, and the name is
// replaced by what the segment is, as JSON, before the request is parsed. So a request has one definition from its beginning to
// its end, and a cursor belongs to it.

/** What a segment is. Who is in it meets all of its conditions. */
export interface Segment {
  readonly of: Owner;
  readonly properties: readonly PropertyFilter<'properties'>[];
  readonly times: readonly FieldFilter<SeenField>[];
  readonly behaviour: readonly Behaviour[];
}

type SeenField = 'firstSeenAt' | 'lastSeenAt';

/** That events of a name are there. */
export type Behaviour = z.output<typeof behaviourSchema>;

const behaviourSchema = z.strictObject({
  did: z.string().min(1, 'must not be empty').meta({ description: 'The name of an event.' }),
  times: z
    .int()
    .min(0)
    .max(BEHAVIOUR_TIMES_MAX)
    .default(1)
    .meta({ description: 'How many such events there are, at least. 0: there are none.' }),
  days: z
    .int()
    .min(1)
    .max(BEHAVIOUR_DAYS_MAX)
    .optional()
    .meta({ description: 'Within so many times 24 hours before the request. Default: at any time.' }),
});

/** What segments can be of, as a body names them. */
const OWNERS_OF = { users: 'user', organizations: 'organization' } as const satisfies Record<string, Owner>;

const KINDS = Object.keys(OWNERS_OF) as (keyof typeof OWNERS_OF)[];

/** The body of `PUT /segments/NAME`, and what is stored of a segment. */
export const segmentSchema = z
  .strictObject({
    of: z.enum(KINDS, `must be one of ${KINDS.join(', ')}`),
    filters: z
      .record(z.string(), z.string())
      .default({})
      .meta({
        description:
          'What is known of them now: `properties.<name>` with the operators of a filter, and `firstSeenAt` and `lastSeenAt` with `lt`, `lte`, `gt` and `gte`.',
        example: { 'properties.plan[in]': 'pro,team', 'lastSeenAt[gte]': '2026-03-01' },
      }),
    behaviour: z.array(behaviourSchema).default([]).meta({ description: 'What they did.' }),
  })
  .meta({ id: 'SegmentDefinition' });

export type SegmentDefinition = z.output<typeof segmentSchema>;

const filterable: Filterable<SeenField, 'properties'> = {
  fields: { firstSeenAt: OWNER_TIME, lastSeenAt: OWNER_TIME },
  documents: ['properties'],
};

/**
 * Parses a body of `PUT /segments/NAME`.
 *
 * @throws {Problem} `invalid_request`, naming every error
 */
export function parseSegmentDefinition(body: unknown): SegmentDefinition {
  const definition = parseBody(segmentSchema, body);
  const { filters, behaviour } = definition;
  const errors: InputError[] = readFilters(filters).errors.map((one) => ({ ...one, path: `filters.${one.path}` }));
  const count = Object.keys(filters).length + behaviour.length;
  if (count === 0)
    errors.push({ path: 'filters', code: 'required', message: 'must have a condition, or behaviour has' });
  if (count > SEGMENT_CONDITIONS_MAX) {
    const message = `and behaviour must have at most ${SEGMENT_CONDITIONS_MAX} conditions together`;
    errors.push({ path: 'filters', code: 'too_many', message });
  }
  refuseErrors(errors);
  return definition;
}

/** Returns the segment of a definition that {@link parseSegmentDefinition} has returned. */
export function segmentOf({ of, filters, behaviour }: SegmentDefinition): Segment {
  const { fields, properties } = readFilters(filters);
  return { of: OWNERS_OF[of], properties, times: fields, behaviour };
}

function readFilters(filters: SegmentDefinition['filters']) {
  return parseParameters({}, filterable, queryOf(filters));
}

/** The operators of the parameter that names segments, `segment`. */
export const SEGMENT_OPERATORS = ['eq', 'ne', 'in'] as const;

/** A filter by segments, which has what they are as JSON: {@link readSegments}. */
export type SegmentFilter = FieldFilter<'segment'>;

/** What stands for a segment that the workspace does not have. */
const UNKNOWN = 'null';

/** What the parameter is compared with. */
export const SEGMENT: OperandKind = {
  operators: SEGMENT_OPERATORS,
  item: z.string().refine((json) => json !== UNKNOWN, 'must name segments of the workspace'),
  typed: false,
  most: {
    values: SEGMENTS_OF_REQUEST_MAX,
    error: {
      path: 'segment',
      code: 'too_many',
      message: `a request may name segments ${SEGMENTS_OF_REQUEST_MAX} times at most`,
    },
  },
};

/** The parameters that name segments. ClickHouse reads the same expression. */
export const SEGMENT_PARAMETER = `^(step[0-9]+[.])?segment(\\[(${SEGMENT_OPERATORS.join('|')})\\])?$`;

const SEGMENT_PATTERN = new RegExp(SEGMENT_PARAMETER);

/** Whether parameters name segments. */
export function namesSegments(parameters: object): boolean {
  return Object.keys(parameters).some((name) => SEGMENT_PATTERN.test(name));
}

/** Returns the parameters with what segments are in place of their names. */
export function withSegments(query: QueryParameters, known: ReadonlyMap<string, Segment>): QueryParameters {
  const jsonOf = (name: string) => {
    const segment = known.get(name);
    return segment ? JSON.stringify(segment) : UNKNOWN;
  };
  // Names have no commas. What stands for them has, so each is escaped as an item of a list is.
  const listOf = (text: string) =>
    text
      .split(',')
      .map((name) => jsonOf(name).replaceAll(/[\\,]/g, '\\$&'))
      .join(',');
  const replaced = Object.entries(query).map(([name, texts]): [string, readonly string[]] => {
    if (!SEGMENT_PATTERN.test(name)) return [name, texts];
    return [name, texts.map(name.endsWith('[in]') ? listOf : jsonOf)];
  });
  // Without a prototype, as that of an address.
  return Object.assign(Object.create(null), Object.fromEntries(replaced));
}

/** Returns the segments of a filter: `in` holds for who is in one of them. */
export function readSegments({ condition }: SegmentFilter): readonly Segment[] {
  return [condition.value].flat().map((json) => JSON.parse(String(json)) as Segment);
}

/** Finds what parameters name. */
export interface KnownSegments {
  /**
   * Returns parameters with what the segments of a workspace are in place of their names.
   *
   * @throws {Problem} `views_not_available`, `store_unavailable`
   */
  readonly inQuery: (workspace: string, query: QueryParameters) => Promise<QueryParameters>;
}
