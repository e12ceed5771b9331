import { Problem } from '@sluice/shared/http/problem';
import { parseExactJson } from '@sluice/shared/json';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { listOf } from '../json-body.ts';
import type { Service } from '../upstream/service.ts';
import { whileConnected } from '../while-connected.ts';
import { withOurNames, withTheirNames } from './statement-names.ts';

/** How many statements a request may have. */
export const STATEMENTS_MAX = 20;

const result = z.object({ data: z.array(z.custom<Readonly<Record<string, unknown>>>()) });

/** Registers `POST /queries`: statements, one after the other, so that a request takes one of the slots of reports. */
export function registerPostQueries(app: FastifyInstance, query: Service): void {
  app.post('/queries', async (request, reply) => {
    const statements = statementsOf(request.body);
    const results = await whileConnected(reply, async (signal) => {
      const found: unknown[] = [];
      for (const sql of statements) {
        const body = JSON.stringify({ sql: withOurNames(sql), format: 'json' });
        const response = await query.send({ method: 'POST', path: '/queries', body, of: request, signal });
        found.push(result.parse(response).data.map((row) => withTheirNames(row, parseExactJson)));
      }
      return found;
    });
    reply.code(201).type('application/json; charset=utf-8');
    return await reply.send(JSON.stringify({ results, limit: 0, offset: 0, total: results.length }));
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
