import { Problem } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { encodeCursor } from '../../http/cursor.ts';
import {
  type Describe,
  jsonResponse,
  limitSchema,
  nextCursorSchema,
  type OwnDescription,
  once,
  timeSchema,
} from '../../http/describe.ts';
import { refuseParameters } from '../../records/filters/parameters.ts';
import type { QueryContext } from '../../store/query.ts';
import { type ReadDependencies, registerRead } from '../../store/read-route.ts';
import { deadLettersParameters, parseDeadLettersRequest } from './dead-letters-parameters.ts';
import { type DeadLetterRow, deadLetterQuery, deadLettersPageQuery } from './dead-letters-query.ts';
import { replayThrough } from './replay.ts';

interface Parts {
  Querystring: QueryParameters;
  Params: { readonly id: string };
}

/** Registers the routes of dead letters, each of the workspace of the key alone. */
export function registerDeadLetters(app: FastifyInstance, { config, queryRunner }: ReadDependencies): void {
  const query = { kind: 'dead_letters_page', pool: 'reports' } as const;
  const find = async (id: string, context: QueryContext) => {
    const rows = await queryRunner.all({ ...query, ...context, statement: (tables) => deadLetterQuery(tables, id) });
    const [found] = rows as unknown as [...DeadLetterRow, row: string][];
    if (!found) throw new Problem('not_found', 'The workspace has no such dead letter.');
    return { ...recordOf(found.slice(0, -1) as DeadLetterRow), row: found.at(-1) };
  };

  registerRead(app, {
    path: '/dead-letters',
    describe: describeList,
    scope: 'admin',
    parse: (request) => parseDeadLettersRequest(request.query, request.workspace),
    async respond({ limit, list, ...request }, context, reply) {
      const rows = (await queryRunner.all({
        ...{ ...query, ...context },
        statement: (tables) => deadLettersPageQuery(tables, { ...request, rowsMax: limit + 1 }),
      })) as unknown as DeadLetterRow[];
      const page = rows.slice(0, limit);
      const last = page.at(-1);
      const nextCursor = last && rows.length > limit ? encodeCursor(list, [last[1], last[0]]) : null;
      return await reply.send({ limit, results: page.map(recordOf), nextCursor });
    },
  });

  registerRead(app, {
    path: '/dead-letters/:id',
    describe: describeOne,
    scope: 'admin',
    parse: (request) => {
      refuseParameters(request.query);
      return request.params.id;
    },
    respond: async (id, context, reply) => await reply.send(await find(id, context)),
  });

  const admission = { pool: 'forwarded', bytes: 0 } as const;
  const options = { config: { scope: 'admin', admission, describe: describeReplay } } as const;
  app.post<Parts>('/dead-letters/:id/replay', options, async (request, reply) => {
    refuseParameters(request.query);
    const { workspace, id: requestId, store, memory, span } = request;
    const { id } = await find(request.params.id, { workspace, requestId, store, memory, span });
    await replayThrough(config, id);
    return await reply.status(204).send();
  });
}

function recordOf(row: DeadLetterRow) {
  const [id, recordedMs, replayedMs, kind, topic, partition, offset, line, reason, client, bytes] = row;
  return {
    id,
    recordedAt: new Date(recordedMs).toISOString(),
    replayedAt: replayedMs === 0 ? null : new Date(replayedMs).toISOString(),
    ...{ kind, topic, partition, offset, line, reason, client: client === '' ? null : client, bytes },
  };
}

const schemas = once(() => {
  const count = z.int().min(0);

  const deadLetter = z
    .object({
      id: z.string(),
      recordedAt: timeSchema,
      replayedAt: timeSchema.nullable().meta({ description: '`null`: it was not, or has failed again since then.' }),
      kind: z.string().meta({ description: '`events`, `changes` or `rejected`.' }),
      topic: z
        .string()
        .meta({ description: 'Where it was in Kafka: topic, partition, offset and line of the message.' }),
      partition: count,
      offset: z.string(),
      line: count,
      reason: z.string().meta({ description: 'Why it could not be stored, or taken.' }),
      client: z.string().nullable().meta({
        description:
          'The client library that sent a rejected call, `other` for one that is not known; `null` of anything else.',
      }),
      bytes: count.meta({ description: 'The length of the row.' }),
    })
    .meta({ id: 'DeadLetter' });

  const withRow = deadLetter
    .extend({ row: z.string().meta({ description: 'As it came. Bytes that are no UTF-8 are shown as U+FFFD.' }) })
    .meta({ id: 'DeadLetterWithRow' });

  const page = z
    .object({ limit: limitSchema, results: z.array(deadLetter), nextCursor: nextCursorSchema })
    .meta({ id: 'DeadLetterPage' });
  return { page, withRow };
});

const idParameter = () => z.object({ id: z.string().meta({ description: 'The id of the dead letter.' }) });

function describing(operationId: string, summary: string, own: () => OwnDescription): Describe {
  return (common) => {
    const { codes = [], ...rest } = own();
    const shared = { ...common, scope: 'admin', keyOptional: false, tag: 'dead-letters' } as const;
    return { ...shared, operationId, summary, ...rest, codes: [...common.codes, ...codes] };
  };
}

const describeList = describing('listDeadLetters', 'Dead letters of the workspace', () => ({
  description:
    'Rows that could not be stored, and calls that could not be taken. A message that does not say whose it is, or may hold rows of several workspaces, is not among them.',
  requestParams: { query: z.object(deadLettersParameters) },
  responses: { 200: jsonResponse('A page of them, the newest first, without their rows.', schemas().page) },
}));

const describeOne = describing('getDeadLetter', 'A dead letter with its row', () => ({
  requestParams: { path: idParameter() },
  responses: { 200: jsonResponse('The dead letter.', schemas().withRow) },
  codes: ['not_found'],
}));

const describeReplay = describing('replayDeadLetter', 'Store a dead letter after all', () => ({
  description:
    'Sends the row through Kafka again; a call is read again first. It is stored unless it is stored already, so a request may be repeated. A row that fails again is the same dead letter again.',
  requestParams: { path: idParameter() },
  responses: { 204: { description: 'Kafka has it.' } },
  codes: ['not_found', 'not_replayable', 'replay_not_available'],
}));
