import type { OperationDescription } from '@sluice/shared/http/openapi';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance } from 'fastify';
import type { Registry } from 'prom-client';
import { z } from 'zod';
import { type CommonDescription, timeSchema } from '../../http/http.ts';
import { refuseParameters } from '../../records/records.ts';
import { type ReadDependencies, registerRead, type Tables } from '../../store/store.ts';
import { PipelineHistory } from './pipeline-history.ts';
import { DEAD_LETTERS_COUNTED_MS, type DeadLettersRow, deadLettersQuery, readServices } from './pipeline-state.ts';
import { ServiceMetrics } from './service-metrics.ts';

/** Sixty samples, with room to spare. */
const HISTORY = { pool: 'documents', bytes: 64 * 1_024 } as const;

/**
 * Registers `GET /pipeline`: the dead letters of the workspace, and what the metrics of the services say; and how the latter were
 * over the last hour.
 */
export function registerPipeline(
  app: FastifyInstance,
  { config, queryRunner }: ReadDependencies,
  registry: Registry,
): void {
  const metrics = new ServiceMetrics();
  const services = () => readServices(config, metrics, () => registry.metrics());
  const history = new PipelineHistory(services);
  if (config.INGEST_URLS || config.WRITER_URL) {
    app.addHook('onReady', async () => history.start());
    app.addHook('preClose', () => history.stop());
  }
  registerRead(app, {
    path: '/pipeline',
    describe: describePipeline,
    parse: ({ query }) => refuseParameters(query),
    async respond(_, context, reply) {
      const query = { kind: 'dead_letters', pool: 'reports', graceMs: 0 } as const;
      const countedFromMs = Date.now() - DEAD_LETTERS_COUNTED_MS;
      const statement = (tables: Tables) => deadLettersQuery(tables, countedFromMs);
      const [row] = await queryRunner.all({ ...query, ...context, statement });
      // After the query, whose slots say how many requests of a workspace get as far as this at once.
      const state = await services();
      const [waiting, lastDay, rejectedLastDay, newestMs] = row as unknown as DeadLettersRow;
      const times = {
        newestAt: newestMs === 0 ? null : new Date(newestMs).toISOString(),
        countedFrom: new Date(countedFromMs).toISOString(),
      };
      return await reply.send({ ...state, deadLetters: { waiting, lastDay, rejectedLastDay, ...times } });
    },
  });
  app.get<{ Querystring: QueryParameters }>(
    '/pipeline/history',
    { config: { admission: HISTORY, describe: describeHistory } },
    async ({ query }) => {
      refuseParameters(query);
      return { samples: history.samples() };
    },
  );
}

const count = () => z.int().min(0);
const seconds = () => z.number().min(0);
const bytes = () => z.number().min(0);

const acceptedSchema = () =>
  z
    .object({
      events: count().meta({ description: 'Events that Kafka has acknowledged.' }),
      rejectedCalls: count().meta({ description: 'Calls that could not be taken; they became dead letters.' }),
      clients: z
        .array(
          z.object({
            client: z.string().meta({ description: 'The client library; `other`: any that is not known.' }),
            calls: count().meta({ description: 'Its calls that were taken or rejected.' }),
            rejectedCalls: count(),
            reasons: z
              .array(z.object({ reason: z.string(), calls: count() }))
              .meta({ description: 'Why calls were rejected, the most frequent first.' }),
          }),
        )
        .meta({ description: 'The client libraries that have sent calls, those with the most rejected calls first.' }),
      refused: z
        .array(z.object({ code: z.string(), requests: count() }))
        .meta({ description: 'Refused requests by the code of the response, the most frequent first.' }),
    })
    .nullable()
    .meta({
      description: 'Of all workspaces, since the ingest-apis of INGEST_URLS started; `null`: `missing` says why.',
    });

const lagSchema = () =>
  z
    .object({
      messages: count().meta({ description: 'Kafka messages that the writers have not stored yet.' }),
      seconds: seconds().meta({ description: 'Age of the oldest of them.' }),
      headroomSeconds: seconds().nullable().meta({
        description:
          'Time until Kafka may delete the oldest of them because of its age; `null`: none waits, or age deletes nothing.',
      }),
    })
    .nullable()
    .meta({
      description:
        'Of all workspaces, from the writers of WRITER_URL, of several ClickHouse servers the worst; `null`: `missing` says why.',
    });

const writersSchema = () =>
  z
    .object({
      storedMessages: count().meta({ description: 'Kafka messages stored; a message has up to thousands of rows.' }),
      batchFailures: count().meta({ description: 'Attempts to store a batch that failed and were retried.' }),
      deadLetters: count().meta({ description: 'Rows of all workspaces that could not be stored.' }),
      deadLetterAlarm: z.boolean().meta({ description: 'Whether more than single rows could not be stored lately.' }),
      haltedPartitions: count().meta({ description: 'Partitions that are halted until an operator resumes them.' }),
      lastStoredAt: timeSchema.nullable().meta({ description: '`null`: nothing was stored since they started.' }),
    })
    .nullable()
    .meta({ description: 'Since the writers of WRITER_URL started; `null`: `missing` says why.' });

const clickHouseSchema = () =>
  z
    .object({
      disks: z.array(z.object({ name: z.string(), freeBytes: bytes(), totalBytes: bytes() })),
      fullestPartition: z
        .object({
          table: z.string(),
          parts: count(),
          partsLimit: count().meta({ description: 'With so many ClickHouse refuses inserts.' }),
        })
        .nullable()
        .meta({ description: 'The partition that is nearest to its limit of parts.' }),
      pendingMutations: count().meta({ description: 'Mutations that are not done; erasures are some of them.' }),
    })
    .nullable()
    .meta({ description: 'What ClickHouse says of itself; `null`: `missing` says why.' });

const erasuresSchema = () =>
  z
    .object({
      pendingUsers: count().meta({ description: 'Users of all workspaces who are deleted and not erased yet.' }),
      oldestSeconds: seconds().meta({ description: 'How long the first of them has waited; 0 when there is none.' }),
      deadlineSeconds: seconds().meta({ description: 'After how long an erasure is late.' }),
    })
    .nullable()
    .meta({ description: '`null`: `missing` says why.' });

const backupSchema = () =>
  z
    .object({
      ageSeconds: seconds().meta({ description: 'Since the start of the last backup; without any, of the database.' }),
    })
    .nullable()
    .meta({ description: '`null` where the writers do not know.' });

const keysFileSchema = () =>
  z
    .object({
      valid: z.boolean().meta({ description: 'Whether every service can use its file.' }),
      ageSeconds: seconds().nullable().meta({
        description:
          'Since the keys in force were modified, in the service whose keys are the oldest; `null`: there are none.',
      }),
    })
    .nullable()
    .meta({ description: 'Of the ingest-apis of INGEST_URLS and this service; `null` where there is none.' });

const serversSchema = () =>
  z
    .array(
      z.object({
        name: z.string(),
        readable: z.boolean().meta({ description: 'Whether it can be read.' }),
        behindSeconds: seconds().nullable().meta({
          description: 'For how long it has been behind Kafka; `null`: that is not known.',
        }),
        chosen: z.boolean().meta({ description: 'Whether requests to this query-api read it.' }),
      }),
    )
    .meta({ description: 'The ClickHouse servers, where there are several and WRITER_URL is set; otherwise empty.' });

const pipelineSchema = () =>
  z
    .object({
      accepted: acceptedSchema(),
      lag: lagSchema(),
      writers: writersSchema(),
      clickHouse: clickHouseSchema(),
      erasures: erasuresSchema(),
      backup: backupSchema(),
      keysFile: keysFileSchema(),
      servers: serversSchema(),
      missing: z.array(z.string()).meta({ description: 'Why something is `null`, each as a sentence.' }),
      deadLetters: z
        .object({
          waiting: count().meta({ description: 'Dead letters that have not been replayed.' }),
          lastDay: count().meta({ description: 'Dead letters of the last 24 hours, replayed or not.' }),
          rejectedLastDay: count().meta({
            description: 'Calls that were rejected in the last 24 hours and have not been replayed.',
          }),
          newestAt: timeSchema.nullable(),
          countedFrom: timeSchema.meta({ description: 'Those recorded before are not counted: 30 days ago.' }),
        })
        .meta({ description: 'Of the workspace. A row that does not say its workspace is not counted.' }),
    })
    .meta({ id: 'Pipeline' });

const rate = () => z.number().min(0).nullable();

const historySchema = () =>
  z
    .object({
      samples: z.array(
        z.object({
          at: timeSchema,
          acceptedPerSecond: rate().meta({
            description: 'Events that Kafka has acknowledged, since the sample before.',
          }),
          storedPerSecond: rate().meta({ description: 'Kafka messages stored, since the sample before.' }),
          lagMessages: count().nullable(),
          lagSeconds: seconds().nullable(),
          haltedPartitions: count().nullable(),
        }),
      ),
    })
    .meta({ id: 'PipelineHistory' });

const EXAMPLE = {
  accepted: {
    events: 80019,
    rejectedCalls: 2,
    clients: [
      { client: 'analytics-php', calls: 40, rejectedCalls: 2, reasons: [{ reason: 'properties', calls: 2 }] },
      { client: 'posthog-js', calls: 75012, rejectedCalls: 0, reasons: [] },
    ],
    refused: [{ code: 'unauthorized', requests: 3 }],
  },
  lag: { messages: 12, seconds: 0.4, headroomSeconds: 604799.6 },
  writers: {
    storedMessages: 3120,
    batchFailures: 0,
    deadLetters: 2,
    deadLetterAlarm: false,
    haltedPartitions: 0,
    lastStoredAt: '2026-03-01T12:00:00.400Z',
  },
  clickHouse: {
    disks: [{ name: 'default', freeBytes: 61203283968, totalBytes: 105088212992 }],
    fullestPartition: { table: 'events', parts: 14, partsLimit: 3000 },
    pendingMutations: 0,
  },
  erasures: { pendingUsers: 4, oldestSeconds: 86400, deadlineSeconds: 626470 },
  backup: { ageSeconds: 43200 },
  keysFile: { valid: true, ageSeconds: 2592000 },
  servers: [
    { name: 'a1', readable: true, behindSeconds: 0.8, chosen: true },
    { name: 'a2', readable: true, behindSeconds: 1.6, chosen: false },
  ],
  missing: [],
  deadLetters: {
    waiting: 2,
    lastDay: 2,
    rejectedLastDay: 2,
    newestAt: '2026-03-01T12:00:00.000Z',
    countedFrom: '2026-01-30T12:00:00.000Z',
  },
};

/** Describes `GET /pipeline`. */
function describePipeline(common: CommonDescription): OperationDescription {
  return {
    ...common,
    operationId: 'getPipeline',
    summary: 'What is accepted, what is not stored yet, what keeps it from being stored, and dead letters',
    tag: 'pipeline',
    responses: {
      200: {
        description: 'The state of the pipeline.',
        content: { 'application/json': { schema: pipelineSchema(), example: EXAMPLE } },
      },
    },
  };
}

/** Describes `GET /pipeline/history`. */
function describeHistory(common: CommonDescription): OperationDescription {
  return {
    ...common,
    codes: ['overloaded'],
    operationId: 'getPipelineHistory',
    summary: 'The pipeline over the last hour',
    description:
      'A sample each minute, the oldest first, since this query-api started; an hour at most. `null`: it was not known then, as in `GET /pipeline`, or a service had started again.',
    tag: 'pipeline',
    responses: {
      200: { description: 'The samples.', content: { 'application/json': { schema: historySchema() } } },
    },
  };
}
