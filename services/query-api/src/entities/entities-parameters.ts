import type { Fault } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import { z } from 'zod';
import { decodeCursor } from '../cursor.ts';
import { cursorParameter, limitParameter } from '../filters/parameter-schemas.ts';
import { canonicalFilters, parseParameters, refuseFaults } from '../filters/parameters.ts';
import type { PropertyFilter } from '../filters/property-filter.ts';
import { LIMIT_DEFAULT } from '../limits.ts';
import type { EntityKind } from './entity-kinds.ts';

/** The parameters of `GET /users` and `GET /organizations`, except those of properties. */
export const entitiesParameters = { limit: limitParameter, cursor: cursorParameter('filters') } as const;

/** The parameters of the memberships of one user or organization. */
export const membershipsParameters = { limit: limitParameter, cursor: cursorParameter('path') } as const;

/** A valid request for a list. */
export interface ListRequest {
  readonly limit: number;
  /** The identifier after which the page begins; empty for the first page. */
  readonly after: string;
  /** What a cursor belongs to: the kind, the workspace and the filters. */
  readonly list: unknown;
}

/** A valid request for users or organizations. */
export interface EntitiesRequest extends ListRequest {
  readonly properties: readonly PropertyFilter[];
}

const position = z.tuple([z.string()]).transform(([id]) => id);

/**
 * Parses the query of a list of users or organizations.
 *
 * @throws {Problem} `invalid_request`, naming every fault
 */
export function parseEntitiesRequest(kind: EntityKind, query: QueryParameters, workspace: string): EntitiesRequest {
  const { values, properties, faults } = parseParameters(
    entitiesParameters,
    { fields: {}, documents: ['properties'] },
    query,
  );
  return { properties, ...listRequest([kind, workspace, canonicalFilters(properties)], values, faults) };
}

/**
 * Parses the query of the memberships of one user or organization.
 *
 * @throws {Problem} `invalid_request`, naming every fault
 */
export function parseMembershipsRequest(
  kind: EntityKind,
  id: string,
  query: QueryParameters,
  workspace: string,
): ListRequest {
  const { values, faults } = parseParameters(membershipsParameters, { fields: {}, documents: [] }, query);
  return listRequest(['memberships', kind, workspace, id], values, faults);
}

/** @throws {Problem} `invalid_request`, naming every fault */
function listRequest(
  list: unknown,
  { cursor, limit = LIMIT_DEFAULT }: { readonly cursor?: string; readonly limit?: number },
  faults: readonly Fault[],
): ListRequest {
  const found = [...faults];
  const after = cursor === undefined || found.length > 0 ? '' : decodeCursor(cursor, list, position);
  if (after === undefined) {
    const message = 'this cursor belongs to another query; repeat its filters';
    found.push({ path: 'cursor', code: 'invalid', message });
  }
  refuseFaults(found);
  return { limit, after: after ?? '', list };
}
