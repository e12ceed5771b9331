import type { Logger } from '@sluice/shared/base/log';
import { Problem } from '@sluice/shared/http/problem';
import { requestLog } from '@sluice/shared/http/server';
import type { FastifyInstance } from 'fastify';
import { encodeCursor } from '../../http/cursor.ts';
import { type JsonTail, sendJson } from '../../http/json-response.ts';
import { type ReadDependencies, registerRead } from '../../store/read-route.ts';
import type { Row, RowBatches } from '../../store/row-parser.ts';
import { asEventRow, type EventRow, eventRecord, sortKeyOf } from './event-record.ts';
import { PageReader } from './events-page.ts';
import { type EventsRequest, parseEventsRequest } from './events-parameters.ts';
import { EventCounter, type Total, totalOfPage } from './events-total.ts';
import { PagePaces } from './page-paces.ts';

/** Registers `GET /events`: a page of a workspace's events, and their total. */
export function registerEvents(app: FastifyInstance, { config, queryRunner }: ReadDependencies): void {
  const pages = new PageReader({ queryRunner, paces: new PagePaces(), timeoutMs: config.QUERY_TIMEOUT_MS });
  const counter = new EventCounter(queryRunner, config.COUNT_TIMEOUT_MS);

  registerRead(app, {
    path: '/events',
    repeats: true,
    parse: ({ query, workspace }) => parseEventsRequest(query, workspace),
    async respond(request, context, reply) {
      const count = () => counter.count(request, context);
      const page = new PageJson(request, request.limit === 0 ? noRows() : pages.read(request, context));
      if (request.limit === 0) {
        const total = request.total === 'none' ? { value: null } : await count();
        return await sendJson(reply, page.chunks(), () => ({ known: totalJson(total), find: async () => '' }));
      }
      return await sendJson(reply, page.chunks(), () => tailOf(request, page, count, () => requestLog(reply.request)));
    },
  });
}

async function* noRows(): AsyncGenerator<readonly Row[], void, undefined> {}

/** The end of the response, with the total. The page has been sent when counting fails: the total is unknown then. */
function tailOf(request: EventsRequest, page: PageJson, count: () => Promise<Total>, log: () => Logger): JsonTail {
  const known = totalOfPage(request, page);
  return {
    known: known && totalJson(known),
    async find() {
      try {
        return totalJson(await count());
      } catch (error) {
        if (!(error instanceof Problem) || error.status === 500)
          log().error({ err: error }, 'cannot count the events of a page');
        return totalJson({ value: null });
      }
    },
  };
}

function totalJson({ value, isLowerBound }: Total): string {
  return `,"total":${value}${isLowerBound === undefined ? '' : `,"totalIsLowerBound":${isLowerBound}`}}`;
}

/** The JSON of a page up to its total. */
class PageJson {
  /** How many records it has had so far. */
  count = 0;
  /** Whether no page comes after it. */
  last = true;
  readonly #request: EventsRequest;
  readonly #rows: RowBatches;

  constructor(request: EventsRequest, rows: RowBatches) {
    this.#request = request;
    this.#rows = rows;
  }

  async *chunks(): AsyncGenerator<string, void, undefined> {
    const { limit, offset, order, list } = this.#request;
    // Ends the query also when the reader stops.
    await using batches = this.#rows;
    let last: EventRow | undefined;
    yield `{"limit":${limit},"offset":${offset},"results":[`;
    for await (const batch of batches) {
      let text = '';
      for (const row of batch.map(asEventRow)) {
        if (this.count === limit) {
          this.last = false;
          break;
        }
        text += this.count === 0 ? eventRecord(row) : `,${eventRecord(row)}`;
        last = row;
        this.count += 1;
      }
      yield text;
    }
    let nextCursor: string | null = null;
    if (!this.last && last) {
      const { value, uuid, timestampMs } = sortKeyOf(last, order.field);
      nextCursor = encodeCursor(list, [value, uuid, timestampMs]);
    }
    yield `],"nextCursor":${JSON.stringify(nextCursor)}`;
  }
}
