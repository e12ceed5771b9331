import type { InputError } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import { z } from 'zod';
import { hashOf, LIMIT_DEFAULT, readCursor, TOTAL_CAP } from '../../http/http.ts';
import { cursorParameter, directionParameter, limitParameter, offsetParameter } from '../filters/parameter-schemas.ts';
import { canonicalFilters, parseParameters, refuseErrors } from '../filters/parameters.ts';
import type { Owner } from '../owners/owners.ts';
import { ORDER_FIELDS } from './event-columns.ts';
import { type EventOrder, type EventSortKey, sortKeySchema } from './event-order.ts';
import { type EventSelection, eventFilterable, START_AFTER_END, selectionParameters } from './event-selection.ts';

/** What `total` may be. */
const TOTALS = ['exact', 'capped', 'none'] as const;

/** The parameters of `GET /events`, except those of properties and operators. */
export const eventParameters = {
  ...selectionParameters,
  limit: limitParameter,
  offset: offsetParameter,
  orderByField: z.enum(ORDER_FIELDS, `must be one of ${ORDER_FIELDS.join(', ')}`).meta({
    default: 'timestamp',
    description: 'Text is ordered by its UTF-8 bytes, a missing value comes first, `uuid` breaks ties.',
  }),
  orderByDirection: directionParameter('DESC'),
  cursor: cursorParameter('filters and order; not together with `offset`'),
  total: z.enum(TOTALS, `must be one of ${TOTALS.join(', ')}`).meta({
    default: 'exact',
    description: `\`none\` skips the count; \`capped\` counts up to ${TOTAL_CAP}, which is much faster.`,
  }),
} as const;

/** A valid request for a page of events. */
export interface EventsRequest extends EventSelection {
  readonly order: EventOrder;
  readonly limit: number;
  readonly offset: number;
  readonly after: EventSortKey | undefined;
  readonly total: (typeof TOTALS)[number];
  readonly workspace: string;
  /** Equal for requests with the same workspace and filters, whatever their times, order and page. */
  readonly listKey: string;
  /** What a cursor belongs to: the workspace, the filters and the order. */
  readonly list: unknown;
}

/** What decides which events a page holds. */
export interface PageRequest extends Omit<EventsRequest, 'total' | 'list'> {
  /** Whose events alone it holds, besides the filters. Default: anybody's. */
  readonly owners?: readonly FewOwners[];
}

/** Some users, or some organizations. */
export interface FewOwners {
  readonly owner: Owner;
  readonly ids: readonly string[];
}

/** Returns the {@link EventsRequest.listKey} of a selection of a workspace's events. */
export function listKeyOf(
  workspace: string,
  { identity, fields, properties }: Pick<EventSelection, 'identity' | 'fields' | 'properties'>,
): string {
  const filters = canonicalFilters([...fields, ...properties]);
  return filters.length === 0 ? workspace : hashOf([workspace, filters, ...linkedOnly(identity)]);
}

/**
 * Returns the identity where a request says it, and it decides which events are in a list. Cursors from before there was one go on, and those
 * of requests without it when the workspace sets another one.
 */
function linkedOnly(identity: EventSelection['identity']): readonly string[] {
  return identity === 'linked' ? [identity] : [];
}

/**
 * Parses the query of `GET /events`.
 *
 * @throws {Problem} `invalid_request`, naming every error
 */
export function parseEventsRequest(query: QueryParameters, workspace: string): EventsRequest {
  const { values, fields, properties, errors } = parseParameters(eventParameters, eventFilterable, query);
  const found: InputError[] = [...errors];
  const { identity, startDate: startMs, endDate: endMs, cursor } = values;
  if (startMs !== undefined && endMs !== undefined && startMs > endMs) found.push(START_AFTER_END);
  if (query['cursor'] && query['offset']) {
    found.push({ path: 'offset', code: 'invalid', message: 'cannot be combined with cursor; leave one of them out' });
  }
  const order: EventOrder = { field: values.orderByField ?? 'timestamp', direction: values.orderByDirection ?? 'DESC' };
  const filters = canonicalFilters([...fields, ...properties]);
  const list = ['events', workspace, filters, startMs, endMs, order, ...linkedOnly(identity)];
  const after = readCursor(cursor, { list, sortKey: sortKeySchema(order), repeat: 'filters and order' }, found);
  refuseErrors(found);
  return {
    identity,
    fields,
    properties,
    startMs,
    endMs,
    order,
    limit: values.limit ?? LIMIT_DEFAULT,
    offset: values.offset ?? 0,
    after,
    total: values.total ?? 'exact',
    workspace,
    listKey: listKeyOf(workspace, { identity, fields, properties }),
    list,
  };
}
