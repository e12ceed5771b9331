import { parseJson } from '@sluice/shared/http/json-body';
import { invalidRequest, Problem, parseBody } from '@sluice/shared/http/problem';
import type { Nobody } from '@sluice/submissions/reading/nobody';
import { identityFields } from '@sluice/submissions/reading/submission';
import { type Link, saidRow } from '@sluice/submissions/rows/link-row';
import { RowCollector } from '@sluice/submissions/rows/partition-rows';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Admission } from '../http/admission.ts';
import type { RowPublisher } from '../kafka/row-publisher.ts';
import { publishRows } from './publish-rows.ts';
import { given, plusErrors } from './query-parameters.ts';
import type { VersionClock } from './version-clock.ts';

const MEANS_NOBODY = 'means nobody: clients send it in place of an identifier';

/** Returns the schema of the body of a request that says whose a visitor is. */
export function identityBody(nobody: Nobody) {
  const somebody = (text: string) => !nobody.isNamedBy(text);
  return z
    .strictObject({
      anonymousId: identityFields.anonymousId.refine(somebody, MEANS_NOBODY),
      userId: identityFields.userId.refine(somebody, MEANS_NOBODY),
    })
    .meta({ id: 'Identity' });
}

const visitorQuery = z.strictObject({ anonymousId: given.pipe(identityFields.anonymousId) });

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
 * once Kafka has that, and outrank what events say. A visitor or user who does not exist is no error.
 */
export function registerIdentities(app: FastifyInstance, options: IdentitiesOptions): void {
  const onRequest = options.admission.admit('delete');
  const schema = identityBody(options.nobody);
  app.post('/v1/identities', { onRequest }, async (request, reply) => {
    const { anonymousId, userId } = parseBody(schema, bodyOf(request));
    await publishSaid(request, { anonymousId, userId }, options);
    return await reply.code(202).send({ status: 'accepted', anonymousId, userId });
  });
  app.delete('/v1/identities', { onRequest }, async (request, reply) => {
    const query = visitorQuery.safeParse(request.query);
    const issues = [...(query.error?.issues ?? []), ...plusErrors(request.url)];
    if (!query.success || issues.length > 0) throw invalidRequest(issues);
    const { anonymousId } = query.data;
    await publishSaid(request, { anonymousId }, options);
    return await reply.code(202).send({ status: 'accepted', anonymousId });
  });
}

async function publishSaid(
  request: FastifyRequest,
  said: Pick<Link, 'anonymousId'> & Partial<Link>,
  { admission, publisher, versions, partitionCount }: IdentitiesOptions,
): Promise<void> {
  const collector = new RowCollector(partitionCount, admission.rowMemory(request));
  collector.add(saidRow(said, { workspace: request.apiKey.workspace, version: versions.next() }));
  await publishRows(publisher, request, collector.finish());
}

function bodyOf({ body }: FastifyRequest): unknown {
  const bytes = body as Buffer | undefined;
  if (bytes === undefined) throw new Problem('malformed_json', 'A JSON body is needed.');
  if (bytes.length > BODY_BYTES_MAX)
    throw new Problem('body_too_large', 'The body is larger than two identifiers are.');
  return parseJson(bytes, JSON.parse);
}
