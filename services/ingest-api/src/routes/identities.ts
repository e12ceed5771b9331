import { parseJson } from '@sluice/shared/http/json-body';
import { invalidRequest, Problem, parseBody } from '@sluice/shared/http/problem';
import { isMergeKey } from '@sluice/shared/rows/merged-user';
import type { Nobody } from '@sluice/submissions/reading/nobody';
import { identityFields, mergeFields } from '@sluice/submissions/reading/submission';
import { mergeRow, saidRow } from '@sluice/submissions/rows/link-row';
import { type OutgoingRow, RowCollector } from '@sluice/submissions/rows/partition-rows';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Admission } from '../http/admission.ts';
import type { RowPublisher } from '../kafka/row-publisher.ts';
import { publishRows } from './publish-rows.ts';
import { given, plusErrors } from './query-parameters.ts';
import type { VersionClock } from './version-clock.ts';

/** Returns the schemas of the bodies of requests that say whose a visitor is, and whom a user became. */
export function identityBodies(nobody: Nobody) {
  const somebody = (text: string) => !nobody.isNamedBy(text);
  const ofSomebody = (field: z.ZodString) =>
    field.refine(somebody, 'means nobody: clients send it in place of an identifier');
  const visitor = z
    .strictObject({ anonymousId: ofSomebody(identityFields.anonymousId), userId: ofSomebody(identityFields.userId) })
    .meta({ id: 'Identity' });
  const merge = z
    .strictObject({ userId: ofSomebody(mergeFields.userId), into: ofSomebody(mergeFields.into) })
    .refine(({ userId, into }) => userId !== into, { path: ['into'], message: 'must be another user than userId' })
    .meta({ id: 'Merge' });
  return { visitor, merge };
}

const visitorQuery = z.strictObject({
  anonymousId: given.pipe(identityFields.anonymousId.refine((id) => !isMergeKey(id), 'is no visitor')),
});

const mergedQuery = z.strictObject({ userId: given.pipe(mergeFields.userId) });

/** More than two identifiers take, however they are escaped. */
const BODY_BYTES_MAX = 16 * 1_024;

export interface IdentitiesOptions {
  readonly admission: Admission;
  readonly publisher: RowPublisher;
  readonly versions: VersionClock;
  /** Whoever is nobody's visitor, and no visitor's user. */
  readonly nobody: Nobody;
  /** The number of partitions of each topic. */
  readonly partitionCount: number;
}

/**
 * `POST /v1/identities` says whose an anonymous visitor is, `DELETE /v1/identities?anonymousId=…` that it is nobody's. Both respond 202
 * once Kafka has that, and outrank what events say. A visitor or user who does not exist is no error. `POST /v1/identities/merge` and `DELETE
 * /v1/identities/merge?userId=…` are the same for what a user became.
 */
export function registerIdentities(app: FastifyInstance, options: IdentitiesOptions): void {
  const onRequest = options.admission.admit('delete');
  const bodies = identityBodies(options.nobody);
  app.post('/v1/identities', { onRequest }, async (request, reply) => {
    const { anonymousId, userId } = parseBody(bodies.visitor, bodyOf(request));
    await publish(request, saidRow({ anonymousId, userId }, acceptanceOf(request, options)), options);
    return await reply.code(202).send({ status: 'accepted', anonymousId, userId });
  });
  app.delete('/v1/identities', { onRequest }, async (request, reply) => {
    const { anonymousId } = parseQuery(visitorQuery, request);
    await publish(request, saidRow({ anonymousId }, acceptanceOf(request, options)), options);
    return await reply.code(202).send({ status: 'accepted', anonymousId });
  });
  const ofAdmin = options.admission.admit('admin');
  app.post('/v1/identities/merge', { onRequest: ofAdmin }, async (request, reply) => {
    const { userId, into } = parseBody(bodies.merge, bodyOf(request));
    await publish(request, mergeRow({ userId, into }, acceptanceOf(request, options)), options);
    return await reply.code(202).send({ status: 'accepted', userId, into });
  });
  app.delete('/v1/identities/merge', { onRequest: ofAdmin }, async (request, reply) => {
    const { userId } = parseQuery(mergedQuery, request);
    await publish(request, mergeRow({ userId }, acceptanceOf(request, options)), options);
    return await reply.code(202).send({ status: 'accepted', userId });
  });
}

/** @throws {Problem} `invalid_request` */
function parseQuery<Output>(schema: z.ZodType<Output>, { query, url }: FastifyRequest): Output {
  const result = schema.safeParse(query);
  const issues = [...(result.error?.issues ?? []), ...plusErrors(url)];
  if (!result.success || issues.length > 0) throw invalidRequest(issues);
  return result.data;
}

function acceptanceOf({ apiKey: { workspace } }: FastifyRequest, { versions }: IdentitiesOptions) {
  return { workspace, version: versions.next() };
}

async function publish(
  request: FastifyRequest,
  row: OutgoingRow,
  { admission, publisher, partitionCount }: IdentitiesOptions,
): Promise<void> {
  const collector = new RowCollector(partitionCount, admission.rowMemory(request));
  collector.add(row);
  await publishRows(publisher, request, collector.finish());
}

function bodyOf({ body }: FastifyRequest): unknown {
  const bytes = body as Buffer | undefined;
  if (bytes === undefined) throw new Problem('malformed_json', 'A JSON body is needed.');
  if (bytes.length > BODY_BYTES_MAX)
    throw new Problem('body_too_large', 'The body is larger than two identifiers are.');
  return parseJson(bytes, JSON.parse);
}
