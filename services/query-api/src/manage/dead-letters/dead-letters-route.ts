import { authenticate } from '@sluice/shared/http/authentication';
import { type InputError, Problem, parseBody } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { KeyRing } from '@sluice/shared/keys/key-ring';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { QueryConfig } from '../../config.ts';
import {
  acceptJson,
  BODY_CODES,
  describer,
  encodeCursor,
  jsonBody,
  jsonResponse,
  LIMIT_DEFAULT,
  limitSchema,
  nextCursorSchema,
  once,
  readCursor,
  timeSchema,
} from '../../http/http.ts';
import {
  cursorParameter,
  limitParameter,
  parseParameters,
  refuseErrors,
  refuseParameters,
} from '../../records/records.ts';
import {
  contextOf,
  type QueryContext,
  type ReadDependencies,
  registerRead,
  type Statement,
} from '../../store/store.ts';
import {
  COUNTED_MAX,
  type DeadLetterRow,
  type DeadLettersList,
  deadLetterQuery,
  type ReadStates,
  type ReasonRow,
  type ReasonsRequest,
  readDeadLetters,
  reasonsQuery,
} from './dead-letters-query.ts';

/** What dead letters are: rows of events, changes of users and organizations, or calls that ingest-api could not take. */
const KINDS = ['events', 'changes', 'rejected'] as const;

/** The parameters of `GET /dead-letters`. */
export const deadLettersParameters = {
  replayed: z.enum(['true', 'false'], 'must be true or false').meta({
    description: '`false`: those that wait to be replayed; `true`: those that were replayed. Default: both.',
  }),
  kind: z.enum(KINDS, `must be one of ${KINDS.join(', ')}`).meta({
    description:
      'Rows of events, changes of users and organizations, or `rejected`: calls that ingest-api could not take. Default: all.',
  }),
  reason: z.string().meta({ description: 'Why they are dead letters, to the letter. Default: all.' }),
  limit: limitParameter,
  cursor: cursorParameter('`replayed`, `kind` and `reason`'),
} as const;

/** The parameters of `GET /dead-letters/reasons`. */
export const reasonsParameters = {
  replayed: deadLettersParameters.replayed,
  kind: deadLettersParameters.kind,
  limit: limitParameter,
} as const;

const sortKey = z.tuple([z.int(), z.string()]);

/** A valid request for a page of dead letters. */
export interface DeadLettersRequest extends DeadLettersList {
  readonly limit: number;
  /** What a cursor belongs to. */
  readonly list: unknown;
}

/** @throws {Problem} `invalid_request`, naming every error */
export function parseDeadLettersRequest(query: QueryParameters, workspace: string): DeadLettersRequest {
  const { values, errors } = parseParameters(deadLettersParameters, { fields: {}, documents: [] }, query);
  const { replayed, kind, reason, limit = LIMIT_DEFAULT, cursor } = values;
  const found: InputError[] = [...errors];
  const list = ['dead-letters', workspace, replayed, kind, reason];
  const place = readCursor(cursor, { list, sortKey, repeat: 'parameters' }, found);
  refuseErrors(found);
  return {
    replayed,
    kind,
    reason,
    after: place && { recordedMs: place[0], id: place[1] },
    limit,
    list,
  };
}

/** @throws {Problem} `invalid_request`, naming every error */
function parseReasonsRequest(query: QueryParameters): ReasonsRequest {
  const { values, errors } = parseParameters(reasonsParameters, { fields: {}, documents: [] }, query);
  refuseErrors(errors);
  const { replayed, kind, limit = LIMIT_DEFAULT } = values;
  return { replayed, kind, limit };
}

interface Parts {
  Querystring: QueryParameters;
  Params: { readonly id: string };
}

/**
 * Registers the routes of dead letters, each of the workspace of the key alone.
 *
 * @param keys whether a key that changes a call may send events
 */
export function registerDeadLetters(
  app: FastifyInstance,
  { config, queryRunner }: ReadDependencies,
  keys: KeyRing,
): void {
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
      const all: ReadStates = (statement) => queryRunner.all({ ...query, ...context, statement });
      const rows = await readDeadLetters(all, request, limit + 1);
      const page = rows.slice(0, limit);
      const last = page.at(-1);
      const nextCursor = last && rows.length > limit ? encodeCursor(list, [last[1], last[0]]) : null;
      return await reply.send({ limit, results: page.map(recordOf), nextCursor });
    },
  });

  registerRead(app, {
    path: '/dead-letters/reasons',
    describe: describeReasons,
    scope: 'admin',
    parse: (request) => parseReasonsRequest(request.query),
    async respond(request, context, reply) {
      const statement: Statement['statement'] = (tables) => reasonsQuery(tables, request);
      const rows = (await queryRunner.all({ ...query, ...context, statement })) as unknown as ReasonRow[];
      const isWhole = rows.every(([, , , , , , looked]) => looked < COUNTED_MAX);
      return await reply.send({
        limit: request.limit,
        results: rows.filter(([, , , count]) => count > 0).map(reasonOf),
        isWhole,
      });
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

  acceptJson(app, REPLAY_BODY_BYTES_MAX);
  const options = {
    config: { scope: 'admin', admission: { pool: 'forwarded', bytes: 0 }, describe: describeReplay },
    bodyLimit: REPLAY_BODY_BYTES_MAX,
  } as const;
  app.post<Parts>('/dead-letters/:id/replay', options, async (request, reply) => {
    refuseParameters(request.query);
    const call = parseReplay(request.body);
    // Without its scope, a key could send events by changing calls.
    if (call !== undefined) authenticate(request, keys, 'ingest');
    const { id, kind } = await find(request.params.id, contextOf(request));
    if (call !== undefined && kind !== 'rejected') {
      throw new Problem('not_replayable', 'Only a rejected call can be changed; a row is sent as it came.');
    }
    await replayThrough(config, id, call);
    return await reply.status(204).send();
  });
}

/** The largest body, in bytes: a call that was rejected is kept whole up to 256 KiB, and may be twice as long in JSON. */
export const REPLAY_BODY_BYTES_MAX = 1_024 * 1_024;

/** The body of `POST /dead-letters/ID/replay`. */
const replaySchema = z
  .strictObject({
    call: z.string().refine(isJsonObject, 'must be the text of a JSON object').meta({
      description: 'What is sent in place of the rejected call: the text of a JSON object, in the same format.',
    }),
  })
  .meta({ id: 'Replay' });

/** A call stands in a list of calls: a text that is no object by itself could be several, or none. */
function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

/** Returns the call of a body, if there is one. @throws {Problem} `invalid_request`, naming every error */
function parseReplay(body: unknown): string | undefined {
  if (body === undefined || body === null) return undefined;
  return parseBody(replaySchema, body).call;
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

function reasonOf([kind, client, reason, count, newestMs, newestId]: ReasonRow) {
  const newestAt = new Date(newestMs).toISOString();
  return { kind, client: client === '' ? null : client, reason, count, newestAt, newestId };
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

  const { kind, reason, client } = deadLetter.shape;
  const reasons = z
    .object({
      limit: limitSchema,
      results: z.array(
        z
          .object({ kind, client, reason, count, newestAt: timeSchema, newestId: z.string() })
          .meta({ id: 'DeadLetterReason' }),
      ),
      isWhole: z.boolean().meta({
        description: `Whether all dead letters were counted. Otherwise those are that are among the newest ${COUNTED_MAX}.`,
      }),
    })
    .meta({ id: 'DeadLetterReasons' });
  return { page, withRow, reasons };
});

const idParameter = () => z.object({ id: z.string().meta({ description: 'The id of the dead letter.' }) });

const describing = describer({ tag: 'dead-letters', scope: 'admin', keyOptional: false });

const describeList = describing('listDeadLetters', 'Dead letters of the workspace', () => ({
  description:
    'Rows that could not be stored, and calls that could not be taken. A message that does not say whose it is, or may hold rows of several workspaces, is not among them.',
  requestParams: { query: z.object(deadLettersParameters) },
  responses: { 200: jsonResponse('A page of them, the newest first, without their rows.', schemas().page) },
}));

const describeReasons = describing('listDeadLetterReasons', 'Why there are dead letters', () => ({
  description: 'How many dead letters of each kind and client have a reason, the most frequent first.',
  requestParams: { query: z.object(reasonsParameters) },
  responses: { 200: jsonResponse('The reasons.', schemas().reasons) },
}));

const describeOne = describing('getDeadLetter', 'A dead letter with its row', () => ({
  requestParams: { path: idParameter() },
  responses: { 200: jsonResponse('The dead letter.', schemas().withRow) },
  codes: ['not_found'],
}));

const describeReplay = describing('replayDeadLetter', 'Store a dead letter after all', () => ({
  description:
    'Sends the row through Kafka again; a call is read again first. It is stored unless it is stored already, so a request may be repeated. A row that fails again is the same dead letter again. With a body, another call is sent in place of the rejected one, as if it had come then; the key needs the scope `ingest` as well.',
  requestParams: { path: idParameter() },
  requestBody: { ...jsonBody(replaySchema), required: false },
  responses: { 204: { description: 'Kafka has it.' } },
  codes: [...BODY_CODES, 'not_found', 'not_replayable', 'replay_not_available'],
}));

/** A writer waits for Kafka and for ClickHouse, each with retries. */
const TIMEOUT_MS = 60_000;

/** Seconds. */
const RETRY_AFTER = 5;

/**
 * Has a writer send a dead letter to Kafka again: the first one of REPLAY_URL that responds. To do it twice changes nothing, so a
 * request whose outcome is not known may be sent again.
 *
 * @param call what is sent in place of a rejected call; `undefined`: the dead letter as it is
 * @throws {Problem} `replay_not_available` where no writer is known, or there are several ClickHouse servers, each of which
 * would have to know of it; `not_replayable`, with the reason; `store_unavailable` when it may not have been replayed
 */
export async function replayThrough(
  { REPLAY_URL: urls, CLICKHOUSE_SERVERS_FILE: servers }: Pick<QueryConfig, 'REPLAY_URL' | 'CLICKHOUSE_SERVERS_FILE'>,
  id: string,
  call: string | undefined,
): Promise<void> {
  if (!urls || servers !== undefined) {
    const detail = `This service cannot replay dead letters; the operator can, with "sluice dead-letters replay ${id}".`;
    throw new Problem('replay_not_available', detail);
  }
  for (const url of urls) {
    const response = await send(`${url.replace(/\/+$/, '')}/dead-letters/${encodeURIComponent(id)}/replay`, call);
    if (response?.status === 204) return;
    if (response?.status === 409) throw new Problem('not_replayable', String(Object(await response.json()).detail));
  }
  const detail = 'The dead letter could not be replayed now; send the request again, which never stores a row twice.';
  throw new Problem('store_unavailable', detail, { retryAfter: RETRY_AFTER });
}

/** Returns the response of a writer with its body read; undefined without one. */
async function send(url: string, call: string | undefined): Promise<Response | undefined> {
  const body = call !== undefined && {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ call }),
  };
  try {
    const response = await fetch(url, { method: 'POST', ...body, signal: AbortSignal.timeout(TIMEOUT_MS) });
    return new Response(response.status === 204 ? null : await response.text(), { status: response.status });
  } catch {
    return undefined;
  }
}
