import { authenticate } from '@sluice/shared/http/authentication';
import { Problem } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { KeyRing } from '@sluice/shared/keys/key-ring';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { describer, type Forwarded, forward, jsonResponse, once, passOn } from '../../http/http.ts';
import { refuseParameters } from '../../records/records.ts';
import { contextOf, type ReadDependencies, type Sql, type Tables } from '../../store/store.ts';
import { EXAMPLE_USERS, type ExampleCall, exampleCalls } from './example-calls.ts';

/** How many calls one request to ingest-api has. */
const CALLS_OF_BATCH = 400;

interface Parts {
  Querystring: QueryParameters;
}

/**
 * Registers the routes of the example data. What is sent goes through ingest-api with the key of the request; a client that has gone
 * does not end it, and a request that did not end may be repeated.
 *
 * @param keys whether the key may send events, or delete users
 */
export function registerExample(app: FastifyInstance, { config, queryRunner }: ReadDependencies, keys: KeyRing): void {
  const [ingestUrl] = config.INGEST_URLS ?? [];
  const admission = { pool: 'forwarded', bytes: 0 } as const;
  const isThere = async (request: FastifyRequest<Parts>, users: 'of the example' | 'others') => {
    const statement = (tables: Tables) => eventOf(tables, users === 'others');
    const query = { kind: 'events_page', pool: 'reports', ...contextOf(request), statement } as const;
    return (await queryRunner.all(query)).length > 0;
  };

  app.post<Parts>('/example-data', { config: { admission, describe: describeLoad } }, async (request, reply) => {
    refuseParameters(request.query);
    authenticate(request, keys, 'ingest');
    if (ingestUrl === undefined) throw new Problem('example_not_available', NO_INGEST);
    if (await isThere(request, 'others')) {
      throw new Problem(
        'workspace_not_empty',
        'The workspace has events of its own: example data would be among them.',
      );
    }
    const calls = exampleCalls(Date.now());
    for (let start = 0; start < calls.length; start += CALLS_OF_BATCH) {
      const response = await forward(ingestUrl, request, batchOf(calls.slice(start, start + CALLS_OF_BATCH)));
      if (!response.ok) return await passOn(response, reply);
      // A body that nobody reads keeps its connection.
      await response.arrayBuffer();
    }
    const events = calls.filter(({ type }) => type === 'track').length;
    return await reply.status(202).send({ users: EXAMPLE_USERS.length, events });
  });

  app.delete<Parts>('/example-data', { config: { admission, describe: describeRemove } }, async (request, reply) => {
    refuseParameters(request.query);
    authenticate(request, keys, 'delete');
    if (ingestUrl === undefined) throw new Problem('example_not_available', NO_INGEST);
    if (!(await isThere(request, 'of the example'))) return await reply.status(202).send({ users: 0 });
    for (const user of EXAMPLE_USERS) {
      const path = `/v1/users?foreignId=${encodeURIComponent(user)}`;
      const response = await forward(ingestUrl, request, { method: 'DELETE', path });
      if (!response.ok) return await passOn(response, reply);
      await response.arrayBuffer();
    }
    return await reply.status(202).send({ users: EXAMPLE_USERS.length });
  });
}

const NO_INGEST = 'query-api knows no ingest-api, which takes the example data.';

function batchOf(batch: readonly ExampleCall[]): Forwarded {
  return { method: 'POST', path: '/v1/batch', body: { batch } };
}

/** Returns the query for one event of the users of the example, or of all others. */
function eventOf(tables: Tables, others: boolean): Sql {
  return {
    sql: `SELECT 1 FROM ${tables.events} WHERE user_id ${others ? 'NOT IN' : 'IN'} {users:Array(String)} LIMIT 1`,
    params: { users: EXAMPLE_USERS },
  };
}

const schemas = once(() => {
  const users = z.int().min(0);
  const loaded = z.object({ users, events: z.int().min(0) }).meta({ id: 'LoadedExample' });
  const removed = z.object({ users }).meta({ id: 'RemovedExample' });
  return { loaded, removed };
});

const describing = describer({ tag: 'example-data', scope: 'query', keyOptional: false });

const describeLoad = describing('loadExampleData', 'Load example data into an empty workspace', () => ({
  description:
    'The users of a made-up product, and what they did in eight weeks. Needs the scope `ingest` as well. Where the workspace has an event of anybody else, nothing is loaded. A request that was broken off may be repeated: each event of a day is stored once.',
  responses: { 202: jsonResponse('The event log has all of it; it is stored within seconds.', schemas().loaded) },
  codes: ['workspace_not_empty', 'example_not_available', 'event_log_unavailable'],
}));

const describeRemove = describing('removeExampleData', 'Remove the example data', () => ({
  description:
    'Deletes the users of the example with all of their events, and nothing else. Needs the scope `delete` as well. A request that was broken off may be repeated.',
  responses: {
    202: jsonResponse('The event log has the deletions; 0 users where there was no example.', schemas().removed),
  },
  codes: ['example_not_available', 'event_log_unavailable'],
}));
