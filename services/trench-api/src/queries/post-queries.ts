import { Problem } from '@sluice/shared/http/problem';
import { untilDisconnected } from '@sluice/shared/http/response-end';
import type { FastifyInstance } from 'fastify';
import { listOf } from '../http/body-list.ts';
import { jsonArray } from '../upstream/json-list.ts';
import type { Service } from '../upstream/service.ts';
import { withOurNames, withTheirNames } from './statement-names.ts';

/** How many statements a request may have. */
export const STATEMENTS_MAX = 20;

/** Registers `POST /queries`: statements, one after the other, so that a request takes one of the slots of reports. */
export function registerPostQueries(app: FastifyInstance, query: Service): void {
  app.post('/queries', async (request, reply) => {
    const statements = statementsOf(request.body);
    const results = await untilDisconnected(reply, async (signal) => {
      const found: Buffer[] = [];
      for (const sql of statements) {
        const body = JSON.stringify({ sql: withOurNames(sql), format: 'json' });
        const asked = { method: 'POST', path: '/queries', body, of: request, signal } as const;
        found.push((await query.list(asked, 'data', withTheirNames)).items);
      }
      return found;
    });
    reply.code(201).type('application/json; charset=utf-8');
    const rest = `,"limit":0,"offset":0,"total":${results.length}}`;
    return await reply.send(Buffer.concat([Buffer.from('{"results":'), jsonArray(results), Buffer.from(rest)]));
  });
}

/** @throws {Problem} `invalid_request` */
function statementsOf(body: unknown): readonly string[] {
  const statements = listOf(body, 'queries');
  const isText = (value: unknown) => typeof value === 'string';
  if (statements.length > 0 && statements.length <= STATEMENTS_MAX && statements.every(isText)) return statements;
  const message = `must have 1 to ${STATEMENTS_MAX} statements, each a text`;
  const errors = [{ path: 'queries', code: 'invalid_value', message }];
  throw new Problem('invalid_request', `queries ${message}.`, { errors });
}
