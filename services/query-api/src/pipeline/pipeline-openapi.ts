import type { PathDescriptions } from '@sluice/shared/http/openapi';
import { z } from 'zod';
import { type CommonDescription, timeSchema } from '../openapi-schemas.ts';

const count = z.int().min(0);

const pipelineSchema = z
  .object({
    accepted: z
      .object({
        events: count.meta({ description: 'Events that Kafka has acknowledged.' }),
        rejectedCalls: count.meta({ description: 'Calls that could not be taken; they became dead letters.' }),
      })
      .nullable()
      .meta({
        description: 'Of all workspaces, since the ingest-apis of INGEST_URLS started; `null`: `missing` says why.',
      }),
    lag: z
      .object({
        messages: count.meta({ description: 'Kafka messages that the writers have not stored yet.' }),
        seconds: z.number().min(0).meta({ description: 'Age of the oldest of them.' }),
      })
      .nullable()
      .meta({ description: 'Of all workspaces, from the writer of WRITER_URL; `null`: `missing` says why.' }),
    missing: z.array(z.string()).meta({ description: 'Why `accepted` or `lag` is `null`.' }),
    deadLetters: z
      .object({
        waiting: count.meta({ description: 'Dead letters that have not been replayed.' }),
        lastDay: count.meta({ description: 'Dead letters of the last 24 hours, replayed or not.' }),
        newestAt: timeSchema.nullable(),
      })
      .meta({ description: 'Of the workspace. A row that does not say its workspace is not counted.' }),
  })
  .meta({ id: 'Pipeline' });

/** Describes `GET /pipeline`. */
export function pipelinePaths(common: CommonDescription): PathDescriptions {
  return {
    '/pipeline': {
      get: {
        ...common,
        operationId: 'getPipeline',
        summary: 'What is accepted, what is not stored yet, and dead letters',
        tag: 'pipeline',
        responses: {
          200: {
            description: 'The state of the pipeline.',
            content: {
              'application/json': {
                schema: pipelineSchema,
                example: {
                  accepted: { events: 80019, rejectedCalls: 2 },
                  lag: { messages: 12, seconds: 0.4 },
                  missing: [],
                  deadLetters: { waiting: 2, lastDay: 2, newestAt: '2026-03-01T12:00:00.000Z' },
                },
              },
            },
          },
        },
      },
    },
  };
}
