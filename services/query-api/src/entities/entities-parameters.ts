import type { Fault } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import { z } from 'zod';
import { decodeCursor } from '../cursor.ts';
import {
  canonical,
  cursorText,
  LIMIT_DEFAULT,
  limitText,
  parseParameters,
  refuseFaults,
} from '../filters/parameters.ts';
import type { PropertyFilter } from '../filters/property-filter.ts';
import type { EntityKind } from './entities-query.ts';

/** The parameters of `GET /users` and `GET /organizations`, besides those of properties. */
export const entitiesParameters = { limit: limitText, cursor: cursorText('filters') } as const;

const filterable = { fields: {}, documents: ['properties'] } as const;

/** A valid question for users or organizations. */
export interface EntitiesRequest {
  readonly properties: readonly PropertyFilter[];
  readonly limit: number;
  /** The identifier after which the page begins. */
  readonly after: string | undefined;
  /** What defines the list that a cursor belongs to. */
  readonly list: unknown;
}

const position = z.tuple([z.string()]).transform(([id]) => id);

/**
 * Reads the query of a list of users or organizations.
 *
 * @throws {Problem} `invalid_request`, naming every fault
 */
export function parseEntitiesRequest(kind: EntityKind, query: QueryParameters, workspace: string): EntitiesRequest {
  const { values, properties, faults } = parseParameters(entitiesParameters, filterable, query);
  const found: Fault[] = [...faults];
  const list = [kind, workspace, canonical(properties)];
  const { cursor } = values;
  const after = cursor !== undefined && found.length === 0 ? decodeCursor(cursor, list, position) : undefined;
  if (cursor !== undefined && found.length === 0 && after === undefined) {
    found.push({ path: 'cursor', code: 'invalid', message: 'is not a cursor of this list, with these filters' });
  }
  refuseFaults(found);
  return { properties, limit: values.limit ?? LIMIT_DEFAULT, after, list };
}

/**
 * The query of a single user or organization: nothing can be asked beside the identifier.
 *
 * @throws {Problem} `invalid_request`
 */
export function refuseParameters(query: QueryParameters): void {
  refuseFaults(
    Object.keys(query).map((name) => ({
      path: name.slice(0, 200),
      code: 'unknown_parameter',
      message: 'is not a known parameter',
    })),
  );
}
