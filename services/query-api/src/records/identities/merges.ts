import type { OperationDescription } from '@sluice/shared/http/openapi';
import { type InputError, Problem, parseBody } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import {
  BODY_CODES,
  type CommonDescription,
  encodeCursor,
  jsonBody,
  jsonResponse,
  LIMIT_DEFAULT,
  once,
  passDeletionOn,
  queryAsSent,
  readCursor,
  timeSchema,
} from '../../http/http.ts';
import { contextOf, type ReadDependencies, registerQueryRead, type Sql, type Tables } from '../../store/store.ts';
import { cursorParameter, limitParameter, querySchema, textParameter } from '../filters/parameter-schemas.ts';
import { parseParameters, refuseErrors } from '../filters/parameters.ts';
import { FORWARDED_CODES, IDENTITY_BODY_BYTES_MAX, pageOf, pageSchema, timeOf } from './identity-page.ts';

/**
 * How many users may become the same one. A person has few accounts, and until the deletion of that person has reached all of them, each
 * statement names them.
 */
export const MERGED_MAX = 100;

/**
 * Registers the routes about which users became others. What somebody says is passed on to an ingest-api, as whose visitors are; but a
 * merge that would not count, since it makes a chain, is refused here: ingest-api reads nothing.
 */
export function registerMerges(app: FastifyInstance, { config, queryRunner }: ReadDependencies): void {
  const { INGEST_URLS = [] } = config;

  registerQueryRead(app, {
    path: '/identities/merges',
    describe: describeList,
    parse: parseMerges,
    async respond({ of, limit, after, list }, context, reply) {
      const rows = (await queryRunner.all({
        ...{ kind: 'identities', ...context },
        statement: (tables) => mergesQuery(tables, of, after, limit + 1),
      })) as unknown as readonly MergeRow[];
      const recordOf = ([userId, into, version, counts]: MergeRow) => ({
        ...{ userId, into, mergedAt: timeOf(version), counts: counts === 1 },
      });
      return await reply.send(pageOf(rows, limit, recordOf, ([userId]) => encodeCursor(list, [userId])));
    },
  });

  const options = { scope: 'admin', admission: { pool: 'forwarded', bytes: 0 } } as const;
  const ofBody = { bodyLimit: IDENTITY_BODY_BYTES_MAX, config: { ...options, describe: describeMerge } };
  app.post('/identities/merge', ofBody, async (request, reply) => {
    const body = parseBody(mergeSchema, request.body);
    await refuseChains(body, (statement) => queryRunner.all({ kind: 'identities', ...contextOf(request), statement }));
    const forwarded = { method: 'POST', path: '/v1/identities/merge', body } as const;
    return await passDeletionOn(INGEST_URLS, { request, reply }, '/v1/identities/merge', forwarded);
  });
  app.delete('/identities/merge', { config: { ...options, describe: describeUnmerge } }, async (request, reply) => {
    const forwarded = { method: 'DELETE', path: `/v1/identities/merge${queryAsSent(request)}` } as const;
    return await passDeletionOn(INGEST_URLS, { request, reply }, '/v1/identities/merge', forwarded);
  });
}

/** Runs a query, and returns its rows. */
type Find = (statement: (tables: Tables) => Sql) => Promise<readonly (readonly unknown[])[]>;

/**
 * @throws {Problem} `merge_chain` when a merge would not count, or would end others: what is stored by now says so
 * @throws {Problem} `invalid_request` when as many became that user as may
 */
async function refuseChains({ userId, into }: z.output<typeof mergeSchema>, find: Find): Promise<void> {
  const found = (await find((tables) => aboutMergeQuery(tables, userId, into))) as unknown as readonly AboutMerge[];
  const next = found.find(([merged]) => merged === into);
  if (next?.[1] === userId) throw chain('into', `The user "${into}" became "${userId}": take that back first.`);
  if (next) throw chain('into', `The user "${into}" became "${next[1]}": merge into that one.`);
  const earlier = found.find(([, person]) => person === userId);
  if (earlier) throw chain('userId', `"${earlier[0]}" became "${userId}": merge that one into "${into}" first.`);
  const others = found.filter(([merged, person]) => person === into && merged !== userId);
  if (others.length < MERGED_MAX) return;
  const message = `has ${MERGED_MAX} users who became it, which is the most`;
  throw new Problem('invalid_request', `The user "${into}" ${message}.`, {
    errors: [{ path: 'into', code: 'too_big', message }],
  });
}

function chain(path: string, detail: string): Problem {
  return new Problem('merge_chain', detail, { errors: [{ path, code: 'custom', message: 'would make a chain' }] });
}

/** A user, and whom it became. */
type AboutMerge = readonly [merged: string, person: string];

/** Returns the query for what was said of `into`, and of who became one of the two. Its rows are {@link AboutMerge}s. */
function aboutMergeQuery(tables: Tables, user: string, into: string): Sql {
  return {
    sql: `SELECT merged, person
FROM ${tables.saidMerges}
WHERE merged = {into:String} OR person IN ({into:String}, {user:String})
ORDER BY merged = {into:String} DESC, person = {user:String} DESC, merged
LIMIT {rows:UInt64}`,
    params: { user, into, rows: MERGED_MAX + 3 },
  };
}

const mergesParameters = {
  userId: textParameter('Whom this user became.'),
  into: textParameter('Who became this user.'),
  limit: limitParameter,
  cursor: cursorParameter('parameters'),
} as const;

const mergePlace = z.tuple([z.string()]);

/**
 * Parses the query of `GET /identities/merges`.
 *
 * @throws {Problem} `invalid_request`, naming every error
 */
function parseMerges(query: QueryParameters) {
  const { values, errors } = parseParameters(mergesParameters, { fields: {}, documents: [] }, query);
  const { userId, into, limit = LIMIT_DEFAULT, cursor } = values;
  const found: InputError[] = [...errors];
  const of: MergesOf = { userId, into };
  const list = ['merges', of];
  const [after = ''] = readCursor(cursor, { list, sortKey: mergePlace, repeat: 'parameters' }, found) ?? [];
  refuseErrors(found);
  return { of, limit, after, list };
}

/** Which merges are listed: of one user, of those who became one, or all. */
interface MergesOf {
  readonly userId: string | undefined;
  readonly into: string | undefined;
}

/** A user, whom it became, when that was accepted, in microseconds since 1970, and whether it counts. */
type MergeRow = readonly [userId: string, into: string, version: number, counts: 0 | 1];

/** Returns the query for merges after one in the order of the merged users' bytes. Its rows are {@link MergeRow}s. */
function mergesQuery(tables: Tables, { userId: user, into }: MergesOf, after: string, rows: number): Sql {
  const conditions = [
    'merged > {after:String}',
    ...(user === undefined ? [] : ['merged = {user:String}']),
    ...(into === undefined ? [] : ['person = {into:String}']),
  ];
  return {
    sql: `SELECT merged, person, merged_version, person GLOBAL NOT IN (SELECT merged FROM ${tables.saidMerges})
FROM ${tables.saidMerges}
WHERE ${conditions.join(' AND ')}
ORDER BY merged
LIMIT {rows:UInt64}`,
    params: { ...(user !== undefined && { user }), ...(into !== undefined && { into }), after, rows },
  };
}

const mergeSchema = z.strictObject({ userId: z.string(), into: z.string() }).meta({ id: 'NewMerge' });

const schemas = once(() => {
  const merge = z
    .object({
      ...{ userId: z.string(), into: z.string().meta({ description: 'Whom it became.' }) },
      mergedAt: timeSchema.meta({ description: 'When that was accepted.' }),
      counts: z.boolean().meta({
        description: 'Whether reads follow it. They do not while `into` became somebody else itself.',
      }),
    })
    .meta({ id: 'Merge' });
  return {
    page: pageSchema('MergePage', merge),
    accepted: z
      .object({ status: z.literal('accepted'), userId: z.string(), into: z.string().optional() })
      .meta({ id: 'AcceptedMerge' }),
  };
});

/** Describes `GET /identities/merges`. */
function describeList(common: CommonDescription): OperationDescription {
  return {
    ...common,
    operationId: 'listMerges',
    summary: 'Users that became others, a page at a time',
    description: 'Ordered by `userId`. With `identity=linked`, what these users did is what the others did.',
    tag: 'users',
    requestParams: { query: querySchema(mergesParameters, {}) },
    responses: { 200: jsonResponse('A page of merges.', schemas().page) },
  };
}

const FORWARDED = {
  tag: 'users',
  scope: 'admin',
  codes: FORWARDED_CODES,
} as const satisfies Partial<OperationDescription>;

/** Describes `POST /identities/merge`. */
function describeMerge(): OperationDescription {
  return {
    ...FORWARDED,
    operationId: 'mergeUser',
    summary: 'Say that a user became another one',
    description: `With \`identity=linked\`, what \`userId\` and its visitors did is what \`into\` did from now on. Nothing that is stored changes, and \`DELETE\` gives the numbers of before. A chain is refused: \`into\` must not have become somebody else, and nobody may have become \`userId\`. Up to ${MERGED_MAX} users may become the same one. Deleting \`into\` deletes who became it. Passed on to ingest-api, whose \`POST /v1/identities/merge\` it is.`,
    codes: [...FORWARDED.codes, 'invalid_request', 'merge_chain', 'store_unavailable', 'overloaded', ...BODY_CODES],
    requestBody: jsonBody(mergeSchema),
    responses: { 202: jsonResponse('The event log has it.', schemas().accepted) },
  };
}

/** Describes `DELETE /identities/merge`. */
function describeUnmerge(): OperationDescription {
  return {
    ...FORWARDED,
    operationId: 'unmergeUser',
    summary: 'Say that a user did not become another one',
    description:
      'Reports count as if the user had never been merged. Passed on to ingest-api, whose `DELETE /v1/identities/merge` it is.',
    requestParams: { query: z.object({ userId: z.string().meta({ description: 'The merged user.' }) }) },
    responses: { 202: jsonResponse('The event log has it.', schemas().accepted) },
  };
}
