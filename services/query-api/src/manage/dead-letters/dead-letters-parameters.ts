import type { InputError } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import { z } from 'zod';
import { readCursor } from '../../http/cursor.ts';
import { LIMIT_DEFAULT } from '../../http/limits.ts';
import { cursorParameter, limitParameter } from '../../records/filters/parameter-schemas.ts';
import { parseParameters, refuseErrors } from '../../records/filters/parameters.ts';
import type { DeadLettersList } from './dead-letters-query.ts';

/** What dead letters are: rows of events, changes of users and organizations, or calls that ingest-api could not take. */
const KINDS = ['events', 'changes', 'rejected'] as const;

/** The parameters of `GET /dead-letters`. */
export const deadLettersParameters = {
  replayed: z.enum(['true', 'false'], 'must be true or false').meta({
    description: '`false`: those that wait to be replayed; `true`: those that were replayed. Default: both.',
  }),
  kind: z.enum(KINDS, `must be one of ${KINDS.join(', ')}`).meta({
    description:
      'Rows of events, changes of users and organizations, or `rejected`: calls that ingest-api could not take. Default: all.',
  }),
  limit: limitParameter,
  cursor: cursorParameter('`replayed` and `kind`'),
} as const;

const sortKey = z.tuple([z.int(), z.string()]);

/** A valid request for a page of dead letters. */
export interface DeadLettersRequest extends Omit<DeadLettersList, 'rowsMax'> {
  readonly limit: number;
  /** What a cursor belongs to. */
  readonly list: unknown;
}

/** @throws {Problem} `invalid_request`, naming every error */
export function parseDeadLettersRequest(query: QueryParameters, workspace: string): DeadLettersRequest {
  const { values, errors } = parseParameters(deadLettersParameters, { fields: {}, documents: [] }, query);
  const { replayed, kind, limit = LIMIT_DEFAULT, cursor } = values;
  const found: InputError[] = [...errors];
  const list = ['dead-letters', workspace, replayed, kind];
  const place = readCursor(cursor, { list, sortKey, repeat: 'parameters' }, found);
  refuseErrors(found);
  return {
    replayed: replayed === undefined ? undefined : replayed === 'true',
    kind,
    after: place && { recordedMs: place[0], id: place[1] },
    limit,
    list,
  };
}
