import type { QueryParameters } from '@sluice/shared/http/query-string';
import { SCOPES } from '@sluice/shared/keys/keys-file';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import type { QueryConfig } from '../../config.ts';
import {
  acceptJson,
  BODY_CODES,
  described,
  describer,
  jsonBody,
  jsonResponse,
  KEYS_PER_WORKSPACE_MAX,
  once,
} from '../../http/http.ts';
import { refuseParameters } from '../../records/records.ts';
import { newKeySchema, parseNewKey, WorkspaceKeys } from './workspace-keys.ts';

/** The largest body, in bytes. */
export const KEY_BODY_BYTES_MAX = 16 * 1_024;

/** What reading the keys file takes: some thousand keys. */
const FILE_BYTES = 1_024 * 1_024;

interface Parts {
  Querystring: QueryParameters;
  Params: { readonly id: string };
}

/** Registers the routes of keys. Without a keys file no request has a key, and none gets as far as this. */
export function registerKeys(app: FastifyInstance, config: QueryConfig): void {
  const keys = new WorkspaceKeys({
    path: config.API_KEYS_FILE ?? '',
    isChangeable: config.API_KEYS_CHANGEABLE,
    rateLimitDefault: config.RATE_LIMIT_DEFAULT,
  });
  acceptJson(app, KEY_BODY_BYTES_MAX);
  const optionsOf = (pool: 'documents' | 'revocations') =>
    ({ config: { scope: 'admin', admission: { pool, bytes: FILE_BYTES } }, bodyLimit: KEY_BODY_BYTES_MAX }) as const;
  const options = optionsOf('documents');
  app.get<Parts>('/keys', described(options, describeList), async ({ query, keyHash: hash, workspace }) => {
    refuseParameters(query);
    return { keys: await keys.list({ hash, workspace }), changeable: keys.isChangeable };
  });
  app.post<Parts>(
    '/keys',
    described(options, describeCreate),
    async ({ query, body, keyHash: hash, workspace }, reply) => {
      refuseParameters(query);
      return await reply.status(201).send(await keys.create({ hash, workspace }, parseNewKey(body)));
    },
  );
  app.delete<Parts>(
    '/keys/:id',
    described(optionsOf('revocations'), describeRevoke),
    async ({ query, params, keyHash: hash, workspace }, reply) => {
      refuseParameters(query);
      await keys.revoke({ hash, workspace }, params.id);
      return await reply.status(204).send();
    },
  );
}

const schemas = once(() => {
  const key = z
    .object({
      id: z.string(),
      name: z.string().nullable().meta({ description: 'What it is for.' }),
      scopes: z.array(z.enum(SCOPES)),
      rateLimit: z.int().min(1).nullable().meta({ description: '`null`: the one of the services, if they have one.' }),
      createdAt: z.string().nullable(),
      current: z.boolean().meta({ description: 'Whether it is the key of this request.' }),
    })
    .meta({ id: 'Key' });

  const keys = z
    .object({
      keys: z.array(key),
      changeable: z
        .boolean()
        .meta({ description: 'Whether keys can be created and revoked here, as API_KEYS_CHANGEABLE says.' }),
    })
    .meta({ id: 'Keys' });

  const created = key
    .extend({ key: z.string().meta({ description: 'The key. It is shown only in this response.' }) })
    .meta({ id: 'CreatedKey' });
  return { keys, created };
});

const describing = describer({ tag: 'keys', scope: 'admin', keyOptional: false, codes: ['overloaded'] });

const describeList = describing('listKeys', 'Keys of the workspace', () => ({
  description: 'Neither the keys nor their hashes.',
  responses: { 200: jsonResponse('All of them.', schemas().keys) },
}));

const describeCreate = describing('createKey', 'Create a key of the workspace', () => ({
  description: `Services accept it within a second. With ${KEYS_PER_WORKSPACE_MAX} keys or more, a workspace gets no other one.`,
  requestBody: jsonBody(newKeySchema),
  responses: { 201: jsonResponse('The key.', schemas().created) },
  codes: [...BODY_CODES, 'keys_read_only'],
}));

const describeRevoke = describing('revokeKey', 'Revoke a key of the workspace', () => ({
  description: 'Services refuse it within a second. A key cannot revoke itself.',
  requestParams: { path: z.object({ id: z.string().meta({ description: 'The id of the key.' }) }) },
  responses: { 204: { description: 'It is revoked.' } },
  codes: ['not_found', 'keys_read_only'],
}));
