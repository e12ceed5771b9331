import { invalidRequest, Problem } from '@sluice/shared/http/problem';
import { visitorOf } from '@sluice/shared/rows/deleted-person';
import { deletionParameters } from '@sluice/submissions/reading/submission';
import { deletionRow } from '@sluice/submissions/rows/deletion-row';
import { RowCollector } from '@sluice/submissions/rows/partition-rows';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { Admission } from '../http/admission.ts';
import { eventLogUnavailable } from '../http/problems.ts';
import type { RowPublisher } from '../kafka/row-publisher.ts';
import type { KnownLinks } from './known-links.ts';
import { publishRows } from './publish-rows.ts';
import { given, plusErrors } from './query-parameters.ts';
import type { VersionClock } from './version-clock.ts';

const deletionQuery = z.strictObject({
  foreignId: given.pipe(deletionParameters.foreignId).optional(),
  anonymousId: given.pipe(deletionParameters.anonymousId).optional(),
  before: given.pipe(deletionParameters.before).optional(),
});

export interface DeleteUserOptions {
  readonly admission: Admission;
  readonly publisher: RowPublisher;
  readonly versions: VersionClock;
  readonly links: KnownLinks;
  /** The number of partitions of each topic. */
  readonly partitionCount: number;
}

/**
 * `DELETE /v1/users?foreignId=…`, or `?anonymousId=…` for an anonymous visitor: responds 202 once Kafka has the deletion. One who
 * does not exist is no error.
 */
export function registerDeleteUser(app: FastifyInstance, options: DeleteUserOptions): void {
  const { admission, publisher, versions, links, partitionCount } = options;
  app.delete('/v1/users', { onRequest: admission.admit('delete') }, async (request, reply) => {
    const query = deletionQuery.safeParse(request.query);
    const issues = [
      ...(query.error?.issues ?? []),
      ...personErrors(request.query as object),
      ...plusErrors(request.url),
    ];
    if (!query.success || issues.length > 0) throw invalidRequest(issues);
    const { foreignId, anonymousId, before } = query.data;
    const person = foreignId ?? visitorOf(anonymousId ?? '');
    const { workspace } = request.apiKey;
    const collector = new RowCollector(partitionCount, admission.rowMemory(request));
    if (foreignId !== undefined) links.forget(workspace, foreignId);
    const version = Math.min(versions.next(), before === undefined ? Number.POSITIVE_INFINITY : before * 1_000);
    collector.add(deletionRow(person, workspace, version));
    await publishRows(publisher, request, collector.finish()).catch((error) => {
      throw error instanceof Problem && error.code === 'event_log_unavailable' ? incomplete(version, error) : error;
    });
    reply.code(202);
    return await reply.send({ status: 'accepted', foreignId, anonymousId });
  });
}

/** Some partitions may have the deletion. Sent again as it was, it would delete what is accepted until then, too. */
function incomplete(version: number, cause: Problem): Problem {
  const before = new Date(Math.ceil(version / 1_000)).toISOString();
  return eventLogUnavailable(
    cause,
    `The event log may not have the whole deletion. Send it again with before=${before}: then what is accepted meanwhile stays.`,
  );
}

/** Returns an error unless exactly one of the two identifiers is given. */
function personErrors(query: object): z.core.$ZodIssue[] {
  const ofUser = Object.hasOwn(query, 'foreignId');
  if (ofUser !== Object.hasOwn(query, 'anonymousId')) return [];
  return ofUser
    ? [{ code: 'custom', path: ['anonymousId'], message: 'must not stand beside foreignId', input: undefined }]
    : [
        {
          ...{ code: 'invalid_type', expected: 'string', path: ['foreignId'] },
          ...{ message: 'is required, or anonymousId', input: undefined },
        },
      ];
}
