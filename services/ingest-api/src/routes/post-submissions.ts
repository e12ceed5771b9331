import { Problem } from '@sluice/shared/http/problem';
import type { Pause } from '@sluice/submissions/reading/pause';
import type { SubmissionRoute } from '@sluice/submissions/reading/submission';
import type { SubmissionReader } from '@sluice/submissions/reading/submission-reader';
import { type PartitionRows, RowCollector } from '@sluice/submissions/rows/partition-rows';
import { leastRowBytes } from '@sluice/submissions/rows/row-size';
import { collectRows } from '@sluice/submissions/rows/submission-rows';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Admission } from '../http/admission.ts';
import type { BodyQueue } from '../http/body-queue.ts';
import type { RowPublisher } from '../kafka/row-publisher.ts';
import type { IngestMetrics } from '../metrics.ts';
import { readIdempotencyKey } from './idempotency-key.ts';
import type { KnownLinks, RequestLinks } from './known-links.ts';
import { publishRows } from './publish-rows.ts';
import type { VersionClock } from './version-clock.ts';

export interface PostSubmissionsOptions {
  readonly admission: Admission;
  readonly bodies: BodyQueue;
  readonly reader: SubmissionReader;
  readonly publisher: RowPublisher;
  readonly versions: VersionClock;
  readonly links: KnownLinks;
  readonly metrics: Pick<IngestMetrics, 'acceptedEvents'>;
  /** The number of partitions of each topic. */
  readonly partitionCount: number;
}

/** `POST /v1/public/userGroups` and `POST /v1/public/users`: respond 202 once Kafka has every row of the submission. */
export function registerPostSubmissions(app: FastifyInstance, options: PostSubmissionsOptions): void {
  const onRequest = options.admission.admit('ingest');
  const submissions = new PostSubmissions(options);
  app.post('/v1/public/userGroups', { onRequest }, (request, reply) => submissions.post(request, reply, 'userGroup'));
  app.post('/v1/public/users', { onRequest }, (request, reply) => submissions.post(request, reply, 'user'));
}

class PostSubmissions {
  readonly #options: PostSubmissionsOptions;

  constructor(options: PostSubmissionsOptions) {
    this.#options = options;
  }

  async post(request: FastifyRequest, reply: FastifyReply, route: SubmissionRoute): Promise<FastifyReply> {
    const { publisher, metrics, bodies, links: known } = this.#options;
    const { workspace } = request.apiKey;
    const links = known.ofRequest(workspace);
    const body = request.body as Buffer | undefined;
    if (body === undefined) throw new Problem('malformed_json', 'A JSON body is needed.');
    const { rows, uuids } = await bodies.read(workspace, body, (pause) =>
      this.#createRows(request, body, route, links, pause),
    );
    // The rows hold everything that is needed. The body, which may be much larger, can go.
    request.body = undefined;
    if (rows.length > 0) await publishRows(publisher, request, rows);
    links.remember();
    metrics.acceptedEvents.inc(uuids.length);
    reply.code(202).type('application/json; charset=utf-8');
    return reply.send(acceptedBody(uuids));
  }

  /** Reads the body and creates its rows. From then on the request holds the memory of the rows alone. */
  async #createRows(
    request: FastifyRequest,
    body: Buffer,
    route: SubmissionRoute,
    links: RequestLinks,
    pause: Pause,
  ): Promise<{ readonly rows: readonly PartitionRows[]; readonly uuids: readonly string[] }> {
    const { admission, reader, versions, partitionCount } = this.#options;
    const { workspace } = request.apiKey;
    const { key, issues } = readIdempotencyKey(request.headers['idempotency-key']);
    const submission = await reader.read(body, route, issues, pause);
    const memory = admission.rowMemory(request, leastRowBytes(submission));
    admission.admitEvents(request, submission.events.length);
    const collector = new RowCollector(partitionCount, memory);
    const acceptance = {
      workspace,
      version: versions.next(Math.max(1, submission.events.length)),
      idempotencyKey: key,
    };
    const uuids = await collectRows(submission, acceptance, collector, links, pause);
    const rows = collector.finish();
    request.reservation?.shrink(body.length);
    return { rows, uuids };
  }
}

/** The JSON of the response. A serializer would take longer than this; uuids need no escapes. */
function acceptedBody(uuids: readonly string[]): string {
  const events = uuids.length === 0 ? '' : `{"uuid":"${uuids.join('"},{"uuid":"')}"}`;
  return `{"status":"accepted","events":[${events}]}`;
}
