import { Problem } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance } from 'fastify';
import type { QueryContext, QueryRunner, Row, RowBatches } from '../clickhouse/query-runner.ts';
import type { Sql } from '../clickhouse/sql.ts';
import type { QueryConfig } from '../config.ts';
import { encodeCursor } from '../cursor.ts';
import { whileConnected } from '../disconnection.ts';
import { sendJson } from '../json-response.ts';
import { asEventRow, type EventRow, eventRecord, positionOf } from './event-record.ts';
import { type EventsRequest, parseEventsRequest } from './events-parameters.ts';
import { countQuery, pageQuery } from './events-query.ts';
import type { HiddenCondition } from './pending-deletions.ts';

const EVENTS = '/events';

/** Registers `GET /events`: a page of a workspace's events, and their total. */
export function registerEvents(
  app: FastifyInstance,
  config: QueryConfig,
  queryRunner: QueryRunner,
  hiddenCondition: HiddenCondition,
): void {
  app.get(EVENTS, async (request, reply) => {
    const { workspace } = request;
    const parsed = parseEventsRequest(request.query as QueryParameters, workspace);
    return await whileConnected(reply, async (signal) => {
      const hidden = await hiddenCondition(workspace);
      const context = { workspace, signal };
      const page = { kind: 'events_page', ...context, ...pageQuery(parsed, hidden) } as const;
      const rows = parsed.limit === 0 ? noRows() : queryRunner.rows(page);
      const total = parsed.counted ? countWithinBudget(context, countQuery(parsed, hidden)) : Promise.resolve(null);
      // The page is awaited first, and fails for the same reason.
      total.catch(() => undefined);
      return await sendJson(reply, pageJson(parsed, total, rows));
    });
  });

  /** Returns the exact number, or `null` where counting goes over its budget. */
  async function countWithinBudget(context: QueryContext, sql: Sql): Promise<number | null> {
    const budget = { timeoutMs: config.COUNT_TIMEOUT_MS, graceMs: 0 };
    try {
      const [row] = await queryRunner.all({ kind: 'events_count', ...budget, ...context, ...sql });
      return row?.[0] as number;
    } catch (error) {
      if (error instanceof Problem && error.code === 'query_too_expensive') return null;
      throw error;
    }
  }
}

async function* noRows(): AsyncGenerator<readonly Row[], void, undefined> {}

/** The JSON of a page, in chunks. */
async function* pageJson(
  { limit, offset, order, list }: EventsRequest,
  total: Promise<number | null>,
  page: RowBatches,
): AsyncGenerator<string, void, undefined> {
  // Ends the query also when the reader stops, or the total fails.
  await using batches = page;
  let count = 0;
  let last: EventRow | undefined;
  let nextCursor: string | null = null;
  // Starts the query of the page before the wait for the total.
  let batch = await batches.next();
  yield `{"limit":${limit},"offset":${offset},"total":${await total},"results":[`;
  for (; !batch.done; batch = await batches.next()) {
    let text = '';
    for (const row of batch.value.map(asEventRow)) {
      if (count === limit && last) {
        const { value, uuid, timestampMs } = positionOf(last, order.field);
        nextCursor = encodeCursor(list, [value, uuid, timestampMs]);
        break;
      }
      text += count === 0 ? eventRecord(row) : `,${eventRecord(row)}`;
      last = row;
      count += 1;
    }
    yield text;
  }
  yield `],"nextCursor":${JSON.stringify(nextCursor)}}`;
}
