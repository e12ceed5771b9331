import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance } from 'fastify';
import type { QueryConfig } from '../../config.ts';
import { acceptJson } from '../../http/request-memory.ts';
import { refuseParameters } from '../../records/filters/parameters.ts';
import { parseNewKey } from './key-request.ts';
import { WorkspaceKeys } from './workspace-keys.ts';

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
  app.register(async (routes) => {
    acceptJson(routes, KEY_BODY_BYTES_MAX);
    const optionsOf = (pool: 'documents' | 'revocations') =>
      ({ config: { scope: 'admin', admission: { pool, bytes: FILE_BYTES } }, bodyLimit: KEY_BODY_BYTES_MAX }) as const;
    const options = optionsOf('documents');
    routes.get<Parts>('/keys', options, async ({ query, keyHash: hash, workspace }) => {
      refuseParameters(query);
      return { keys: await keys.list({ hash, workspace }), changeable: keys.isChangeable };
    });
    routes.post<Parts>('/keys', options, async ({ query, body, keyHash: hash, workspace }, reply) => {
      refuseParameters(query);
      return await reply.status(201).send(await keys.create({ hash, workspace }, parseNewKey(body)));
    });
    routes.delete<Parts>(
      '/keys/:id',
      optionsOf('revocations'),
      async ({ query, params, keyHash: hash, workspace }, reply) => {
        refuseParameters(query);
        await keys.revoke({ hash, workspace }, params.id);
        return await reply.status(204).send();
      },
    );
  });
}
