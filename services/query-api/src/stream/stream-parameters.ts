import { type InputError, Problem } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import { POSITION_TOO_OLD, RESUMABLE_MS } from '../http/http.ts';
import {
  canonicalFilters,
  eventFilterable,
  type FieldFilter,
  notEmpty,
  parseParameters,
  readSegments,
  refuseErrors,
  type SelectionField,
  selectionParameters,
} from '../records/records.ts';
import { QueryTooLong, tooLong } from '../store/store.ts';
import { decodePosition, type StreamId } from './stream-position.ts';
import { type StreamSelection, weightOf } from './stream-query.ts';

const { startDate: _start, endDate: _end, ...fieldParameters } = selectionParameters;

/** The parameters of `GET /events/stream`, except those of properties and operators. */
export const streamParameters = {
  ...fieldParameters,
  after: notEmpty.meta({
    description:
      'The `id` of the last event that was received: the stream goes on after it. The header `Last-Event-ID`, which browsers send when they connect again, counts more.',
  }),
} as const;

/** The header in which a client that connects again sends the last `id`. */
export const LAST_EVENT_ID = 'last-event-id';

/** A valid request for a stream. */
export interface StreamRequest {
  readonly selection: StreamSelection;
  /** Equal for requests with the same workspace, filters and identity. */
  readonly key: string;
  /** How much the filters add to a query. */
  readonly weight: number;
  /** Where the stream begins; `undefined`: now. */
  readonly after: StreamId | undefined;
}

/**
 * Parses a request for `GET /events/stream`.
 *
 * @param lastEventId the header; it may be empty, as browsers may send it
 * @throws {Problem} `invalid_request`, naming every error, or when the filters are too long; `position_lost` when the
 * position is too old
 */
export function parseStreamRequest(
  query: QueryParameters,
  lastEventId: string | undefined,
  workspace: string,
  nowMs = Date.now(),
): StreamRequest {
  const { values, fields, properties, errors } = parseParameters(streamParameters, eventFilterable, query);
  const found: InputError[] = [...errors];
  const ids = { [LAST_EVENT_ID]: lastEventId || undefined, after: values.after };
  const decoded = Object.entries(ids).flatMap(([path, id]) => {
    if (id === undefined) return [];
    const position = decodePosition(id);
    if (!position) found.push({ path, code: 'invalid', message: 'is not the id of an event of a stream' });
    return position ? [position] : [];
  });
  found.push(...fields.flatMap(errorOfBehaviour));
  refuseErrors(found);
  const [after] = decoded;
  if (after && nowMs - after.sentAtMs > RESUMABLE_MS) throw new Problem('position_lost', POSITION_TOO_OLD);
  const filters = canonicalFilters([...fields, ...properties]);
  const { identity = 'raw' } = values;
  const selection = { workspace, identity, fields, properties };
  return {
    selection,
    weight: requiredWeight(selection),
    key: JSON.stringify([workspace, filters, identity]),
    after,
  };
}

/** What somebody did would have to be computed again for each event. */
function errorOfBehaviour({ field, condition }: FieldFilter<SelectionField>): InputError[] {
  if (field !== 'segment') return [];
  const hasBehaviour = readSegments({ field, condition }).some(({ behaviour }) => behaviour.length > 0);
  if (!hasBehaviour) return [];
  const message =
    'must name segments without behaviour: streams and webhooks follow what is known of users and organizations';
  return [{ path: condition.operator === 'eq' ? field : `${field}[${condition.operator}]`, code: 'invalid', message }];
}

/** A listener whose filters are too long for any query is refused at once: it would never be sent an event. */
function requiredWeight(selection: StreamSelection): number {
  try {
    return weightOf(selection);
  } catch (error) {
    throw error instanceof QueryTooLong ? tooLong(error) : error;
  }
}
