import { Problem } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance } from 'fastify';
import type { Query, Row, Store } from '../clickhouse/query-runner.ts';
import type { QueryConfig } from '../config.ts';
import { encodeCursor } from '../cursor.ts';
import { whileConnected } from '../disconnection.ts';
import { sendJson } from '../json-response.ts';
import { asEventPageRow, type EventPageRow, eventRecord, positionOf } from './event-record.ts';
import { type EventsRequest, parseEventsRequest } from './events-parameters.ts';
import { countQuery, pageQuery } from './events-query.ts';
import type { HiddenCondition } from './pending-deletions.ts';

export const EVENTS = '/events';

/** `GET /events`: a page of a workspace's events, and how many there are in all. */
export function registerEvents(
  app: FastifyInstance,
  config: QueryConfig,
  store: Store,
  hiddenCondition: HiddenCondition,
): void {
  app.get(EVENTS, async (request, reply) => {
    const { workspace } = request;
    const parsed = parseEventsRequest(request.query as QueryParameters, workspace);
    return await whileConnected(reply, async (signal) => {
      const hidden = await hiddenCondition(workspace);
      const asker = { workspace, signal };
      const page = { kind: 'events_page', ...asker, ...pageQuery(parsed, hidden) } as const;
      const rows = parsed.limit === 0 ? noRows() : store.rows(page);
      const count = { ...asker, ...countQuery(parsed, hidden) };
      const total = parsed.counted ? countWithinBudget(count) : Promise.resolve(null);
      // Reading the page fails for the same reason, and is waited for first.
      total.catch(() => undefined);
      return await sendJson(reply, answer(parsed, total, rows));
    });
  });

  /** The exact number, or `null` where counting takes more than it may. */
  async function countWithinBudget(
    query: Pick<Query, 'workspace' | 'signal' | 'sql' | 'params'>,
  ): Promise<number | null> {
    try {
      const [row] = await store.all({ kind: 'events_count', timeoutMs: config.COUNT_TIMEOUT_MS, graceMs: 0, ...query });
      return row?.[0] as number;
    } catch (error) {
      if (error instanceof Problem && error.code === 'query_too_expensive') return null;
      throw error;
    }
  }
}

async function* noRows(): AsyncGenerator<readonly Row[], void, undefined> {}

async function* answer(
  { limit, offset, order, list }: EventsRequest,
  total: Promise<number | null>,
  page: AsyncGenerator<readonly Row[], void, undefined>,
): AsyncGenerator<string, void, undefined> {
  // Ended also when nobody reads on, or the total fails.
  await using batches = page;
  let served = 0;
  let last: EventPageRow | undefined;
  let nextCursor: string | null = null;
  // The page begins to be read before the count is waited for.
  let batch = await batches.next();
  yield `{"limit":${limit},"offset":${offset},"total":${await total},"results":[`;
  for (; !batch.done; batch = await batches.next()) {
    let text = '';
    for (const row of batch.value.map(asEventPageRow)) {
      if (served === limit && last) {
        const { value, uuid, timestampMs } = positionOf(last, order.field);
        nextCursor = encodeCursor(list, [value, uuid, timestampMs]);
        break;
      }
      text += served === 0 ? eventRecord(row) : `,${eventRecord(row)}`;
      last = row;
      served += 1;
    }
    yield text;
  }
  yield `],"nextCursor":${JSON.stringify(nextCursor)}}`;
}
