import { invalidRequest } from '@sluice/shared/http/problem';
import { deletionParameters } from '@sluice/submissions/reading/submission';
import { createRowGatherer } from '@sluice/submissions/rows/row-gatherer';
import { deletionRow } from '@sluice/submissions/rows/submission-rows';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { Admission } from '../http/admission.ts';
import type { RowPublisher } from '../kafka/row-publisher.ts';
import { publishRows } from './publish-rows.ts';
import type { VersionClock } from './version-clock.ts';

const deletionQuery = z.strictObject({
  foreignId: z
    .array(z.string(), { error: 'is required' })
    .length(1, 'must be given once')
    .transform(([id]) => id)
    .pipe(deletionParameters.foreignId),
});

export interface DeleteUserOptions {
  readonly admission: Admission;
  readonly publisher: RowPublisher;
  readonly versions: VersionClock;
  /** The number of partitions of each topic. */
  readonly partitionCount: number;
}

/** `DELETE /v1/users?foreignId=…`: responds 202 once Kafka has the deletion. A user who does not exist is no error. */
export function registerDeleteUser(app: FastifyInstance, options: DeleteUserOptions): void {
  const { admission, publisher, versions, partitionCount } = options;
  app.delete('/v1/users', { onRequest: admission.admit('delete') }, async (request, reply) => {
    const query = deletionQuery.safeParse(request.query);
    if (!query.success) throw invalidRequest(query.error.issues);
    const { foreignId } = query.data;
    const { workspace } = request.apiKey;
    const gatherer = createRowGatherer(partitionCount);
    gatherer.add(deletionRow(foreignId, workspace, versions()));
    await publishRows(publisher, workspace, gatherer.finish());
    reply.code(202);
    return await reply.send({ status: 'accepted', foreignId });
  });
}
