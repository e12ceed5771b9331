import type { OperationDescription, PathDescriptions } from '@sluice/shared/http/openapi';
import { z } from 'zod';
import { type CommonDescription, limitSchema, nextCursorSchema, timeSchema } from '../../http/openapi-schemas.ts';
import { deadLettersParameters } from './dead-letters-parameters.ts';

const count = z.int().min(0);

const deadLetterSchema = z
  .object({
    id: z.string(),
    recordedAt: timeSchema,
    replayedAt: timeSchema.nullable().meta({ description: '`null`: it was not, or has failed again since then.' }),
    kind: z.string().meta({ description: '`events`, `changes` or `rejected`.' }),
    topic: z.string().meta({ description: 'Where it was in Kafka: topic, partition, offset and line of the message.' }),
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

const withRowSchema = deadLetterSchema
  .extend({ row: z.string().meta({ description: 'As it came. Bytes that are no UTF-8 are shown as U+FFFD.' }) })
  .meta({ id: 'DeadLetterWithRow' });

const pageSchema = z
  .object({ limit: limitSchema, results: z.array(deadLetterSchema), nextCursor: nextCursorSchema })
  .meta({ id: 'DeadLetterPage' });

const json = (description: string, schema: z.ZodType) => ({
  description,
  content: { 'application/json': { schema } },
});

const idParameter = z.object({ id: z.string().meta({ description: 'The id of the dead letter.' }) });

type Given = Pick<OperationDescription, 'responses'> & Partial<OperationDescription>;

/** Describes the routes of dead letters. */
export function deadLetterPaths(common: CommonDescription): PathDescriptions {
  const operation = (operationId: string, summary: string, given: Given): OperationDescription => ({
    ...{ ...common, scope: 'admin', keyOptional: false, tag: 'dead-letters', operationId, summary },
    ...given,
    codes: [...common.codes, ...(given.codes ?? [])],
  });
  return {
    '/dead-letters': {
      get: operation('listDeadLetters', 'Dead letters of the workspace', {
        description:
          'Rows that could not be stored, and calls that could not be taken. A message that does not say whose it is, or may hold rows of several workspaces, is not among them.',
        requestParams: { query: z.object(deadLettersParameters) },
        responses: { 200: json('A page of them, the newest first, without their rows.', pageSchema) },
      }),
    },
    '/dead-letters/{id}': {
      get: operation('getDeadLetter', 'A dead letter with its row', {
        requestParams: { path: idParameter },
        responses: { 200: json('The dead letter.', withRowSchema) },
        codes: ['not_found'],
      }),
    },
    '/dead-letters/{id}/replay': {
      post: operation('replayDeadLetter', 'Store a dead letter after all', {
        description:
          'Sends the row through Kafka again; a call is read again first. It is stored unless it is stored already, so a request may be repeated. A row that fails again is the same dead letter again.',
        requestParams: { path: idParameter },
        responses: { 204: { description: 'Kafka has it.' } },
        codes: ['not_found', 'not_replayable', 'replay_not_available'],
      }),
    },
  };
}
