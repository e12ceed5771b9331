import { type InputError, Problem } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import {
  acceptJson,
  BODY_CODES,
  type Describe,
  described,
  describer,
  jsonBody,
  jsonResponse,
  once,
  SEGMENT_CONDITIONS_MAX,
  SEGMENT_NAME_CHARACTERS_MAX,
  SEGMENTS_MAX,
  SEGMENTS_OF_REQUEST_MAX,
} from '../../http/http.ts';
import {
  parseSegmentDefinition,
  refuseErrors,
  refuseParameters,
  SEGMENT_SIZE_SETTINGS,
  segmentOf,
  segmentSchema,
  segmentSizeQuery,
} from '../../records/records.ts';
import { reportRows } from '../../reports/reports.ts';
import {
  type Admission,
  type ReadDependencies,
  type ReadRoute,
  respondToRead,
  type Sql,
  type Tables,
} from '../../store/store.ts';
import type { StoredDocument } from '../views/console-documents.ts';
import type { NamedSegment, Segments } from './segments.ts';

/** The largest body, in bytes. */
export const SEGMENT_BODY_BYTES_MAX = 8 * 1_024;

/** All segments of a workspace, as they are stored, read and sent. */
const LIST: Admission = { pool: 'documents', bytes: 6 * SEGMENTS_MAX * SEGMENT_BODY_BYTES_MAX };

interface Parts {
  Querystring: QueryParameters;
  Params: { readonly name: string };
}

/**
 * Registers the routes of segments.
 *
 * @param segments default: they are off, and each route says so
 */
export function registerSegments(
  app: FastifyInstance,
  { queryRunner }: ReadDependencies,
  segments: Segments | undefined,
): void {
  acceptJson(app, SEGMENT_BODY_BYTES_MAX);
  const options = { bodyLimit: SEGMENT_BODY_BYTES_MAX, config: { admission: LIST } };
  const ofAdmin = { ...options, config: { scope: 'admin', admission: LIST } } as const;
  const on = () => segments ?? segmentsAreOff();
  const sendCounted: ReadRoute<StoredDocument<NamedSegment>>['respond'] = async (stored, context, reply) => {
    const segment = segmentOf(stored.content);
    const hiding = (tables: Tables, hidden: Sql | undefined) => segmentSizeQuery({ tables, hidden }, segment);
    const settings = SEGMENT_SIZE_SETTINGS;
    const rows = await reportRows(queryRunner, { kind: 'segment_size', hiding, settings, ...context });
    return await reply.send({ ...recordOf(stored), count: rows?.[0]?.[0] ?? null, complete: rows !== undefined });
  };
  app.get<Parts>('/segments', described(options, DESCRIBE.list), async ({ query, workspace }) => {
    refuseParameters(query);
    const all = [...(await on().all(workspace)).values()].map(recordOf);
    return { segments: all.toSorted((one, other) => (one.name < other.name ? -1 : 1)) };
  });
  app.get<Parts>('/segments/:name', described(options, DESCRIBE.get), async (request, reply) => {
    refuseParameters(request.query);
    const stored = await on().find(request.workspace, request.params.name);
    // Its query has a slot of its own.
    request.releaseSlot();
    return await respondToRead({ respond: sendCounted }, stored, request, reply);
  });
  app.put<Parts>('/segments/:name', described(ofAdmin, DESCRIBE.put), async ({ query, params, body, workspace }) => {
    refuseParameters(query);
    requireName(params.name);
    return recordOf(await on().put(workspace, { name: params.name, ...parseSegmentDefinition(body) }));
  });
  app.delete<Parts>(
    '/segments/:name',
    described(ofAdmin, DESCRIBE.remove),
    async ({ query, params, workspace }, reply) => {
      refuseParameters(query);
      await on().delete(workspace, params.name);
      return await reply.status(204).send();
    },
  );
}

/** @throws {Problem} always */
export function segmentsAreOff(): never {
  throw new Problem('views_not_available', 'Segments are off, as saved views are; the operator can turn them on.');
}

const NAME = new RegExp(`^[A-Za-z0-9_-]{1,${SEGMENT_NAME_CHARACTERS_MAX}}$`);

/** @throws {Problem} `invalid_request` */
function requireName(name: string): void {
  const message = `must have at most ${SEGMENT_NAME_CHARACTERS_MAX} letters of ASCII, digits, - and _`;
  const errors: InputError[] = NAME.test(name) ? [] : [{ path: 'name', code: 'invalid', message }];
  refuseErrors(errors);
}

function recordOf({ content, createdAtMs, changedAtMs }: StoredDocument<NamedSegment>) {
  const [createdAt, changedAt] = [new Date(createdAtMs).toISOString(), new Date(changedAtMs).toISOString()];
  return { ...content, createdAt, changedAt };
}

const schemas = once(() => {
  const segment = segmentSchema
    .extend({ name: z.string(), createdAt: z.iso.datetime(), changedAt: z.iso.datetime() })
    .meta({ id: 'Segment' });
  const counted = segment
    .extend({
      count: z.int().min(0).nullable().meta({ description: 'How many are in it now; `null` when that took too long.' }),
      complete: z.boolean().meta({ description: 'Whether the query finished within its time.' }),
    })
    .meta({ id: 'CountedSegment' });
  return { segment, counted };
});

const describing = describer({ tag: 'segments', codes: ['views_not_available', 'store_unavailable', 'overloaded'] });

const withName = {
  path: z.object({ name: z.string().meta({ description: 'The name of the segment.', example: 'paying' }) }),
};
const ofAdmin = { keyOptional: false, scope: 'admin', requestParams: withName } as const;

const DESCRIBE = {
  list: describing('listSegments', 'Segments of the workspace', () => ({
    responses: { 200: jsonResponse('All of them, by name.', z.object({ segments: z.array(schemas().segment) })) },
  })),
  get: describing('getSegment', 'A segment, and how many are in it', () => ({
    description: 'Who they are: `GET /users?segment=<name>`, or `GET /organizations?segment=<name>`.',
    requestParams: withName,
    responses: { 200: jsonResponse('The segment.', schemas().counted) },
    codes: ['not_found', 'query_too_expensive'],
  })),
  put: describing('putSegment', 'Store a segment', () => ({
    ...ofAdmin,
    description: `Users or organizations by what is known of them now and by what they did. Who is in it meets all of its conditions, of which there are 1 to ${SEGMENT_CONDITIONS_MAX}. It is computed anew whenever a read asks for it. Reads filter by its name: \`segment=<name>\`; a request may name segments ${SEGMENTS_OF_REQUEST_MAX} times. What was stored with the name before is replaced, and the next read of every view that names it has the new one. A workspace can have ${SEGMENTS_MAX} segments. A webhook cannot follow behaviour: while one names the segment, \`segment_in_use\`.`,
    requestBody: jsonBody(segmentSchema),
    responses: { 200: jsonResponse('The segment.', schemas().segment) },
    codes: ['segment_in_use', ...BODY_CODES],
  })),
  remove: describing('deleteSegment', 'Delete a segment', () => ({
    ...ofAdmin,
    description: 'Not while a view or a webhook names it: `errors` says which.',
    responses: { 204: { description: 'It is deleted.' } },
    codes: ['not_found', 'segment_in_use'],
  })),
} satisfies Record<string, Describe>;
