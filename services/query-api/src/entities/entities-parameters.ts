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

const filterable = { fields: {}, documents: ['properties'] } as const;

/** A valid request for users or organizations. */
export interface EntitiesRequest {
  readonly properties: readonly PropertyFilter[];
  readonly limit: number;
  /** The identifier after which the page begins. */
  readonly after: string | undefined;
  /** What a cursor belongs to: the kind, the workspace and the filters. */
  readonly list: unknown;
}

const position = z.tuple([z.string()]).transform(([id]) => id);

/**
 * Parses the query of a list of users or organizations.
 *
 * @throws {Problem} `invalid_request`, naming every fault
 */
export function parseEntitiesRequest(kind: EntityKind, query: QueryParameters, workspace: string): EntitiesRequest {
  const { values, properties, faults } = parseParameters(entitiesParameters, filterable, query);
  const found: Fault[] = [...faults];
  const list = [kind, workspace, canonicalFilters(properties)];
  const { cursor } = values;
  const after = cursor !== undefined && found.length === 0 ? decodeCursor(cursor, list, position) : undefined;
  if (cursor !== undefined && found.length === 0 && after === undefined) {
    const message = 'this cursor belongs to another query; repeat its filters';
    found.push({ path: 'cursor', code: 'invalid', message });
  }
  refuseFaults(found);
  return { properties, limit: values.limit ?? LIMIT_DEFAULT, after, list };
}
