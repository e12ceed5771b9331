import type { Logger } from '@sluice/shared/base/log';
import type { OperationDescription } from '@sluice/shared/http/openapi';
import { Problem } from '@sluice/shared/http/problem';
import { requestLog } from '@sluice/shared/http/server';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import {
  type CommonDescription,
  encodeCursor,
  type JsonTail,
  jsonObjectSchema,
  limitSchema,
  nextCursorSchema,
  sendJson,
  timeSchema,
} from '../../http/http.ts';
import { type ReadDependencies, type Row, type RowBatches, registerRead } from '../../store/store.ts';
import { querySchema } from '../filters/parameter-schemas.ts';
import { EVENT_EXAMPLE, EVENT_FIELDS, type EventColumnType } from './event-columns.ts';
import { asEventRow, type EventRow, eventRecord, sortKeyOf } from './event-record.ts';
import { filtersOfEvents } from './event-selection.ts';
import { PageReader } from './events-page.ts';
import { type EventsRequest, eventParameters, parseEventsRequest } from './events-parameters.ts';
import { EventCounter, type Total, totalOfPage } from './events-total.ts';
import { LINKED_USER, OwnersOfVisitors, withIdentity } from './identity.ts';
import { PageDensities } from './page-windows.ts';

/** Registers `GET /events`: a page of a workspace's events, and their total. */
export function registerEvents(app: FastifyInstance, { config, queryRunner }: ReadDependencies): void {
  const pages = new PageReader({ queryRunner, densities: new PageDensities(), timeoutMs: config.QUERY_TIMEOUT_MS });
  const counter = new EventCounter(queryRunner, config.COUNT_TIMEOUT_MS);

  registerRead(app, {
    path: '/events',
    describe: describeEvents,
    repeats: true,
    parse: ({ query, workspace }) => parseEventsRequest(query, workspace),
    async respond(request, given, reply) {
      const context = await withIdentity(queryRunner, request, given);
      const owners = context.arePersons ? new OwnersOfVisitors(queryRunner, context, request) : undefined;
      const count = () => counter.count(request, context);
      const page = new PageJson(request, request.limit === 0 ? noRows() : pages.read(request, context), owners);
      if (request.limit === 0) {
        const total = request.total === 'none' ? { value: null } : await count();
        return await sendJson(reply, page.chunks(), () => ({ known: totalJson(total), find: async () => '' }));
      }
      return await sendJson(reply, page.chunks(), () => tailOf(request, page, count, () => requestLog(reply.request)));
    },
  });
}

/** Describes `GET /events`. */
function describeEvents(common: CommonDescription): OperationDescription {
  const schemas: Readonly<Record<EventColumnType, z.ZodType>> = {
    uuid: z.guid(),
    text: z.string(),
    identifier: z.string().nullable(),
    json: jsonObjectSchema,
    milliseconds: timeSchema,
    microseconds: timeSchema,
  };

  const event = z
    .object({
      ...Object.fromEntries(
        EVENT_FIELDS.map(([field, { type, description }]) => {
          const schema = schemas[type];
          return [field, description === undefined ? schema : schema.meta({ description })];
        }),
      ),
      [LINKED_USER]: z.string().nullable().optional().meta({
        description:
          'Only where `identity` is `linked`: the `userId`, or else the user whom the anonymous visitor belongs to.',
      }),
    })
    .meta({ id: 'Event' });

  const eventPage = z
    .object({
      limit: limitSchema,
      offset: z.int().min(0),
      results: z.array(event),
      nextCursor: nextCursorSchema,
      total: z.int().min(0).nullable().meta({
        description:
          'The exact number of events on all pages; `null` when it was not requested, when counting exceeded its budget, or when it failed after the results were sent.',
      }),
      totalIsLowerBound: z.boolean().optional().meta({
        description: 'Only with `total=capped`: whether there are more events than `total`.',
      }),
    })
    .meta({ id: 'EventPage' });
  return {
    ...common,
    operationId: 'listEvents',
    summary: 'Events, a page at a time',
    description:
      'All parameters are optional, and all filters have to match. Pages by `nextCursor` cost the same however deep they are, and neither skip nor repeat an event while others arrive.',
    tag: 'events',
    requestParams: { query: querySchema(eventParameters, filtersOfEvents()) },
    responses: {
      200: {
        description: 'A page of events.',
        content: {
          'application/json': {
            schema: eventPage,
            example: { limit: 100, offset: 0, results: [EVENT_EXAMPLE], nextCursor: null, total: 1 },
          },
        },
      },
    },
  };
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
  readonly #owners: OwnersOfVisitors | undefined;

  /** @param owners default: the records do not say whose their visitors are */
  constructor(request: EventsRequest, rows: RowBatches, owners?: OwnersOfVisitors) {
    this.#request = request;
    this.#rows = rows;
    this.#owners = owners;
  }

  async *chunks(): AsyncGenerator<string, void, undefined> {
    const { limit, offset, order, list } = this.#request;
    // Ends the query also when the reader stops.
    await using batches = this.#rows;
    let last: EventRow | undefined;
    yield `{"limit":${limit},"offset":${offset},"results":[`;
    for await (const batch of batches) {
      let text = '';
      const events = batch.map(asEventRow);
      const users = await this.#owners?.ofEvents(events);
      for (const [index, row] of events.entries()) {
        if (this.count === limit) {
          this.last = false;
          break;
        }
        const record = eventRecord(row, users && { [LINKED_USER]: users[index] || null });
        text += this.count === 0 ? record : `,${record}`;
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
