import type { OperationDescription, PathDescriptions } from '@sluice/shared/http/openapi';
import { SCOPES } from '@sluice/shared/keys/keys-file';
import { z } from 'zod';
import { KEYS_PER_WORKSPACE_MAX } from '../../http/limits.ts';
import type { CommonDescription } from '../../http/openapi-schemas.ts';
import { newKeySchema } from './key-request.ts';

const keySchema = z
  .object({
    id: z.string(),
    scopes: z.array(z.enum(SCOPES)),
    rateLimit: z.int().min(1).nullable().meta({ description: '`null`: the one of the services, if they have one.' }),
    createdAt: z.string().nullable(),
    current: z.boolean().meta({ description: 'Whether it is the key of this request.' }),
  })
  .meta({ id: 'Key' });

const keysSchema = z
  .object({
    keys: z.array(keySchema),
    changeable: z
      .boolean()
      .meta({ description: 'Whether keys can be created and revoked here, as API_KEYS_CHANGEABLE says.' }),
  })
  .meta({ id: 'Keys' });

const createdSchema = keySchema
  .extend({ key: z.string().meta({ description: 'The key. It is shown only in this response.' }) })
  .meta({ id: 'CreatedKey' });

const idParameter = z.object({ id: z.string().meta({ description: 'The id of the key.' }) });

const json = (description: string, schema: z.ZodType) => ({
  description,
  content: { 'application/json': { schema } },
});

type Given = Pick<OperationDescription, 'responses'> & Partial<OperationDescription>;

/** Describes the routes of keys. */
export function keyPaths(common: CommonDescription): PathDescriptions {
  const operation = (operationId: string, summary: string, given: Given): OperationDescription => ({
    ...{ ...common, scope: 'admin', keyOptional: false, tag: 'keys', operationId, summary },
    ...given,
    codes: ['overloaded', ...(given.codes ?? [])],
  });
  return {
    '/keys': {
      get: operation('listKeys', 'Keys of the workspace', {
        description: 'Neither the keys nor their hashes.',
        responses: { 200: json('All of them.', keysSchema) },
      }),
      post: operation('createKey', 'Create a key of the workspace', {
        description: `Services accept it within a second. With ${KEYS_PER_WORKSPACE_MAX} keys or more, a workspace gets no other one.`,
        requestBody: { required: true, content: { 'application/json': { schema: newKeySchema } } },
        responses: { 201: json('The key.', createdSchema) },
        codes: ['malformed_json', 'body_too_large', 'unsupported_media_type', 'keys_read_only'],
      }),
    },
    '/keys/{id}': {
      delete: operation('revokeKey', 'Revoke a key of the workspace', {
        description: 'Services refuse it within a second. A key cannot revoke itself.',
        requestParams: { path: idParameter },
        responses: { 204: { description: 'It is revoked.' } },
        codes: ['not_found', 'keys_read_only'],
      }),
    },
  };
}
