import type { OperationDescription } from '@sluice/shared/http/openapi';
import type { InputError } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import {
  acceptJson,
  BODY_CODES,
  type CommonDescription,
  encodeCursor,
  type Forwarded,
  jsonBody,
  jsonResponse,
  LIMIT_DEFAULT,
  once,
  passDeletionOn,
  queryAsSent,
  readCursor,
  timeSchema,
} from '../../http/http.ts';
import { type ReadDependencies, registerQueryRead, type Sql, type Tables } from '../../store/store.ts';
import { withIdentity } from '../events/identity.ts';
import { cursorParameter, limitParameter, querySchema, textParameter } from '../filters/parameter-schemas.ts';
import { parseParameters, refuseErrors } from '../filters/parameters.ts';
import { visitorsOfPerson } from '../owners/persons.ts';
import { FORWARDED_CODES, IDENTITY_BODY_BYTES_MAX, pageOf, pageSchema, timeOf } from './identity-page.ts';
import { registerMerges } from './merges.ts';

/**
 * Registers the routes about whose anonymous visitors are. What somebody says is passed on to an ingest-api, since that alone writes
 * to Kafka. A client that has gone does not end it.
 */
export function registerIdentities(app: FastifyInstance, deps: ReadDependencies): void {
  const { config, queryRunner } = deps;
  const { INGEST_URLS = [] } = config;

  registerQueryRead(app, {
    path: '/identities',
    describe: describeList,
    parse: parseIdentities,
    async respond({ of, limit, after, list }, context, reply) {
      const known = await withIdentity(queryRunner, { identity: 'linked' }, context);
      const rows = (await queryRunner.all({
        ...{ kind: 'identities', ...known },
        statement: (tables) => identitiesQuery(tables, of, after, limit + 1),
      })) as unknown as readonly IdentityRow[];
      const recordOf = ([anonymousId, userId, version, said]: IdentityRow) => ({
        ...{ anonymousId, userId, linkedAt: timeOf(version), by: said ? 'request' : 'event' },
      });
      return await reply.send(pageOf(rows, limit, recordOf, ([visitor]) => encodeCursor(list, [visitor])));
    },
  });

  registerQueryRead(app, {
    path: '/identities/conflicts',
    describe: describeConflicts,
    parse: parseConflicts,
    async respond({ limit, after, list }, context, reply) {
      const rows = (await queryRunner.all({
        ...{ kind: 'identities', pool: 'reports', ...context },
        statement: (tables) => conflictsQuery(tables, after, limit + 1),
      })) as unknown as readonly ConflictRow[];
      const recordOf = ([anonymousId, userId, otherUserId, version]: ConflictRow) => ({
        ...{ anonymousId, userId, otherUserId, linkedAt: timeOf(version) },
      });
      return await reply.send(
        pageOf(rows, limit, recordOf, ([visitor, , other]) => encodeCursor(list, [visitor, other])),
      );
    },
  });

  acceptJson(app, IDENTITY_BODY_BYTES_MAX);
  const options = { scope: 'delete', admission: { pool: 'forwarded', bytes: 0 } } as const;
  const ofBody = { bodyLimit: IDENTITY_BODY_BYTES_MAX, config: { ...options, describe: describeSet } };
  const passOn = async (request: FastifyRequest, reply: FastifyReply, forwarded: Forwarded) =>
    await passDeletionOn(INGEST_URLS, { request, reply }, '/v1/identities', forwarded);
  app.post('/identities', ofBody, async (request, reply) => {
    const body = request.body as object | undefined;
    return await passOn(request, reply, { method: 'POST', path: '/v1/identities', ...(body && { body }) });
  });
  app.delete('/identities', { config: { ...options, describe: describeUnset } }, async (request, reply) => {
    return await passOn(request, reply, { method: 'DELETE', path: `/v1/identities${queryAsSent(request)}` });
  });
  registerMerges(app, deps);
}

const pageParameters = { limit: limitParameter, cursor: cursorParameter('parameters') } as const;

const identitiesParameters = {
  userId: textParameter(
    'The visitors of this user, and of those with whom it is one person by a merge. It is required, or else `anonymousId`.',
  ),
  anonymousId: textParameter('This visitor, if it belongs to anybody.'),
  ...pageParameters,
} as const;

const NO_FILTERS = { fields: {}, documents: [] };

const ONE_OF_TWO: InputError = { path: 'userId', code: 'required', message: 'is required, or else anonymousId' };

const visitorPlace = z.tuple([z.string()]);

/**
 * Parses the query of `GET /identities`.
 *
 * @throws {Problem} `invalid_request`, naming every error
 */
function parseIdentities(query: QueryParameters) {
  const { values, errors } = parseParameters(identitiesParameters, NO_FILTERS, query);
  const { userId, anonymousId, limit = LIMIT_DEFAULT, cursor } = values;
  const found: InputError[] = [...errors];
  if (query['userId'] === undefined && query['anonymousId'] === undefined) found.push(ONE_OF_TWO);
  const of: IdentitiesOf = { userId, anonymousId };
  const list = ['identities', of];
  const [after = ''] = readCursor(cursor, { list, sortKey: visitorPlace, repeat: 'parameters' }, found) ?? [];
  refuseErrors(found);
  return { of, limit, after, list };
}

const conflictPlace = z.tuple([z.string(), z.string()]);

/**
 * Parses the query of `GET /identities/conflicts`.
 *
 * @throws {Problem} `invalid_request`, naming every error
 */
function parseConflicts(query: QueryParameters) {
  const { values, errors } = parseParameters(pageParameters, NO_FILTERS, query);
  const { limit = LIMIT_DEFAULT, cursor } = values;
  const found: InputError[] = [...errors];
  const list = ['identity-conflicts'];
  const place = readCursor(cursor, { list, sortKey: conflictPlace, repeat: 'parameters' }, found);
  refuseErrors(found);
  const after: ConflictPlace = { anonymousId: place?.[0] ?? '', otherUserId: place?.[1] ?? '' };
  return { limit, after, list };
}

/** Which visitors with an owner are listed: those of a user, one of them, or both. */
interface IdentitiesOf {
  readonly userId: string | undefined;
  readonly anonymousId: string | undefined;
}

/** A visitor and its owner; when the fact was accepted that decides it, in microseconds since 1970, and whether somebody said it. */
type IdentityRow = readonly [anonymousId: string, userId: string, version: number, said: 0 | 1];

/** Returns the query for visitors with an owner after one in the order of their bytes. Its rows are {@link IdentityRow}s. */
function identitiesQuery(tables: Tables, of: IdentitiesOf, after: string, rows: number): Sql {
  const { userId: user, anonymousId: visitor } = of;
  const visitors = visitor === undefined ? AFTER_VISITOR : `${AFTER_VISITOR} AND anonymous_id = {visitor:String}`;
  const owners =
    user === undefined ? { sql: tables.owners({ visitors }), params: {} } : visitorsOfPerson(tables, user, visitors);
  return {
    sql: `SELECT anonymous_id, user_id, version, said
FROM ${owners.sql}
ORDER BY anonymous_id
LIMIT {rows:UInt64}`,
    params: { ...owners.params, ...(visitor !== undefined && { visitor }), after, rows },
  };
}

const AFTER_VISITOR = 'anonymous_id > {after:String}';

/** A visitor, its owner, somebody else to whom it was linked, and when that was for the first time. */
type ConflictRow = readonly [anonymousId: string, userId: string, otherUserId: string, version: number];

/** Where a page of conflicts begins: after this visitor and this other user. */
interface ConflictPlace {
  readonly anonymousId: string;
  readonly otherUserId: string;
}

/** Returns the query for links to others than the owners, in the order of visitors and of the others. Its rows are {@link ConflictRow}s. */
function conflictsQuery(tables: Tables, after: ConflictPlace, rows: number): Sql {
  return {
    sql: `SELECT anonymous_id, user_id, other_user_id, version
FROM ${tables.linkConflicts({ visitors: 'anonymous_id >= {after_visitor:String}' })}
WHERE (anonymous_id, other_user_id) > ({after_visitor:String}, {after_user:String})
ORDER BY anonymous_id, other_user_id
LIMIT {rows:UInt64}`,
    params: { after_visitor: after.anonymousId, after_user: after.otherUserId, rows },
  };
}

const schemas = once(() => {
  const anonymousId = z.string().meta({ description: 'The anonymous visitor.' });
  const identity = z
    .object({
      ...{
        anonymousId,
        userId: z.string().meta({ description: 'Whose it is, also where that user became another one.' }),
      },
      linkedAt: timeSchema.meta({ description: 'When that was accepted which decides it.' }),
      by: z.enum(['event', 'request']).meta({
        description: '`event`: the first event or call that named both. `request`: `POST /identities`.',
      }),
    })
    .meta({ id: 'Identity' });
  const conflict = z
    .object({
      ...{ anonymousId, userId: z.string().meta({ description: 'Whose it is: the first whom it was linked to.' }) },
      otherUserId: z.string().meta({ description: 'Somebody else whom an event or a call named with it.' }),
      linkedAt: timeSchema.meta({ description: 'When that was accepted for the first time.' }),
    })
    .meta({ id: 'IdentityConflict' });
  const named = { anonymousId: z.string(), userId: z.string() };
  return {
    identities: pageSchema('IdentityPage', identity),
    conflicts: pageSchema('IdentityConflictPage', conflict),
    set: z.strictObject(named).meta({ id: 'NewIdentity' }),
    accepted: z
      .object({ status: z.literal('accepted'), anonymousId: z.string(), userId: z.string().optional() })
      .meta({ id: 'AcceptedIdentity' }),
  };
});

/** Describes `GET /identities`. */
function describeList(common: CommonDescription): OperationDescription {
  return {
    ...common,
    operationId: 'listIdentities',
    summary: 'The anonymous visitors of a user, a page at a time',
    description:
      'Ordered by `anonymousId`. With `identity=linked`, lists and reports count the events of these visitors as those of the user.',
    tag: 'users',
    requestParams: { query: querySchema(identitiesParameters, {}) },
    responses: { 200: jsonResponse('A page of visitors.', schemas().identities) },
  };
}

/** Describes `GET /identities/conflicts`. */
function describeConflicts(common: CommonDescription): OperationDescription {
  return {
    ...common,
    operationId: 'listIdentityConflicts',
    summary: 'Visitors that were linked to several users, a page at a time',
    description:
      'A visitor belongs to the first user that it was linked to. Each other one is here, until somebody says whose the visitor is by `POST` or `DELETE /identities`.',
    tag: 'users',
    requestParams: { query: querySchema(pageParameters, {}) },
    responses: { 200: jsonResponse('A page of conflicts.', schemas().conflicts) },
  };
}

const FORWARDED = {
  tag: 'users',
  scope: 'delete',
  codes: FORWARDED_CODES,
} as const satisfies Partial<OperationDescription>;

/** Describes `POST /identities`. */
function describeSet(): OperationDescription {
  return {
    ...FORWARDED,
    operationId: 'setIdentity',
    summary: 'Say whose an anonymous visitor is',
    description:
      'It outranks what events say, and what was said before. Passed on to ingest-api, whose `POST /v1/identities` it is: for pages that reach query-api alone, such as the console.',
    codes: [...FORWARDED.codes, 'invalid_request', ...BODY_CODES],
    requestBody: jsonBody(schemas().set),
    responses: { 202: jsonResponse('The event log has it.', schemas().accepted) },
  };
}

/** Describes `DELETE /identities`. */
function describeUnset(): OperationDescription {
  return {
    ...FORWARDED,
    operationId: 'unsetIdentity',
    summary: 'Say that an anonymous visitor is nobody’s',
    description:
      'It outranks what events say, and what was said before: reports count as if the visitor had never been linked. Passed on to ingest-api, whose `DELETE /v1/identities` it is.',
    requestParams: { query: z.object({ anonymousId: z.string().meta({ description: 'The visitor.' }) }) },
    responses: { 202: jsonResponse('The event log has it.', schemas().accepted) },
  };
}
