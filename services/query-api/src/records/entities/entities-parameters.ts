import type { InputError } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import { z } from 'zod';
import { LIMIT_DEFAULT, readCursor } from '../../http/http.ts';
import { cursorParameter, directionParameter, limitParameter, textParameter } from '../filters/parameter-schemas.ts';
import { canonicalFilters, type Filterable, parseParameters, refuseErrors } from '../filters/parameters.ts';
import type { PropertyFilter } from '../filters/property-filter.ts';
import { readSegments, SEGMENT, type SegmentFilter } from '../owners/segment.ts';
import { ENTITY_ROUTES, type EntityKind } from './entity-kinds.ts';
import { ENTITY_ORDER_FIELDS, type EntityOrder, type EntitySortKey } from './entity-order.ts';

/** The parameters of `GET /users` and `GET /organizations`, except those of properties. */
export const entitiesParameters = {
  limit: limitParameter,
  orderByField: z.enum(ENTITY_ORDER_FIELDS, `must be one of ${ENTITY_ORDER_FIELDS.join(', ')}`).meta({
    default: 'id',
    description: 'Identifiers are ordered by their UTF-8 bytes, and break ties between equal times.',
  }),
  orderByDirection: directionParameter('ASC'),
  segment: textParameter(
    'The name of a segment: those in it. `segment[ne]`: those who are not; `segment[in]`: those in one of some.',
  ),
  cursor: cursorParameter('filters and order'),
} as const;

/** The parameters of the memberships of one user or organization. */
export const membershipsParameters = { limit: limitParameter, cursor: cursorParameter('path') } as const;

/** A valid request for a list. */
export interface ListRequest {
  readonly limit: number;
  /** Where the page before ended; `undefined` for the first page. */
  readonly after: EntitySortKey | undefined;
  /** What a cursor belongs to: the kind, the workspace, the filters and the order. */
  readonly list: unknown;
}

/** A valid request for users or organizations. */
export interface EntitiesRequest extends ListRequest {
  readonly segments: readonly SegmentFilter[];
  readonly properties: readonly PropertyFilter[];
  readonly order: EntityOrder;
}

/** What users and organizations can be filtered by. */
export const entityFilterable: Filterable<'segment', 'properties'> = {
  fields: { segment: SEGMENT },
  documents: ['properties'],
};

const idSortKey = z.tuple([z.string()]).transform(([id]): EntitySortKey => ({ id, seenMs: 0 }));
const seenSortKey = z.tuple([z.string(), z.int()]).transform(([id, seenMs]): EntitySortKey => ({ id, seenMs }));

/**
 * Parses the query of a list of users or organizations.
 *
 * @throws {Problem} `invalid_request`, naming every error
 */
export function parseEntitiesRequest(kind: EntityKind, query: QueryParameters, workspace: string): EntitiesRequest {
  const parsed = parseParameters(entitiesParameters, entityFilterable, query);
  const { values, fields: segments, properties } = parsed;
  const errors = [...parsed.errors, ...segments.flatMap((filter) => errorOfKind(kind, filter))];
  const order: EntityOrder = { field: values.orderByField ?? 'id', direction: values.orderByDirection ?? 'ASC' };
  const list = [kind, workspace, canonicalFilters([...segments, ...properties]), order];
  const sortKey = order.field === 'id' ? idSortKey : seenSortKey;
  return { segments, properties, order, ...listRequest(list, sortKey, values, errors) };
}

function errorOfKind(kind: EntityKind, filter: SegmentFilter): InputError[] {
  if (readSegments(filter).every((segment) => segment.of === kind)) return [];
  return [{ path: filter.field, code: 'invalid', message: `must name segments of ${ENTITY_ROUTES[kind].tag}` }];
}

/** The identifier of a user or an organization in a path. */
export const identifierParameter = z.string().meta({ description: 'The identifier, percent-encoded.' });

/** The parameters of one user or organization. */
export const entityParameters = {
  propertyTimes: z.enum(['true', 'false'], 'must be true or false').meta({
    default: 'false',
    description: 'Whether `propertiesSetAt` is returned.',
  }),
} as const;

/** A valid request for one user or organization. */
export interface EntityRequest {
  readonly id: string;
  readonly propertyTimes: boolean;
}

/**
 * Parses the request for one user or organization.
 *
 * @throws {Problem} `invalid_request`, naming every error
 */
export function parseRecordRequest({ query, params: { id } }: EntityPath): EntityRequest {
  const { values, errors } = parseParameters(entityParameters, { fields: {}, documents: [] }, query);
  refuseErrors(errors);
  return { id, propertyTimes: values.propertyTimes === 'true' };
}

interface EntityPath {
  readonly query: QueryParameters;
  readonly params: { readonly id: string };
}

/**
 * Parses the query of the memberships of one user or organization.
 *
 * @throws {Problem} `invalid_request`, naming every error
 */
export function parseMembershipsRequest(
  kind: EntityKind,
  id: string,
  query: QueryParameters,
  workspace: string,
): ListRequest {
  const { values, errors } = parseParameters(membershipsParameters, { fields: {}, documents: [] }, query);
  return listRequest(['memberships', kind, workspace, id], idSortKey, values, errors);
}

/** @throws {Problem} `invalid_request`, naming every error */
function listRequest(
  list: unknown,
  sortKey: typeof idSortKey | typeof seenSortKey,
  { cursor, limit = LIMIT_DEFAULT }: { readonly cursor?: string; readonly limit?: number },
  errors: readonly InputError[],
): ListRequest {
  const found = [...errors];
  const after = readCursor(cursor, { list, sortKey, repeat: 'filters and order' }, found);
  refuseErrors(found);
  return { limit, after, list };
}
