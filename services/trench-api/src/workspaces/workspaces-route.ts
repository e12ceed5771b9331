import { requestLog } from '@sluice/shared/http/server';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { TrenchConfig } from '../config.ts';
import type { Service } from '../upstream/service.ts';
import { createAdminCheck } from './admin-key.ts';
import { untilInForce } from './in-force.ts';
import { changedWorkspace, newWorkspace, parseWorkspace } from './workspace-body.ts';
import { Workspaces } from './workspaces.ts';

/** The largest body, in bytes: every service reads the keys file whenever it changes. */
export const WORKSPACE_BODY_BYTES_MAX = 16 * 1_024;

export interface WorkspacesOptions {
  readonly config: Pick<TrenchConfig, 'TRENCH_ADMIN_KEY' | 'API_KEYS_FILE'>;
  readonly ingest: Service;
  readonly query: Service;
  readonly now: () => number;
}

interface OfWorkspace {
  Params: { workspaceId: string };
}

const PATH = '/workspaces/:workspaceId';

/** Registers `/workspaces`, for the admin alone. */
export function registerWorkspaces(app: FastifyInstance, { config, ingest, query, now }: WorkspacesOptions): void {
  const requireAdmin = createAdminCheck(config.TRENCH_ADMIN_KEY);
  // Without a file there is no admin key, and no request gets here.
  const workspaces = new Workspaces(config.API_KEYS_FILE ?? '', now);
  const options = {
    bodyLimit: WORKSPACE_BODY_BYTES_MAX,
    onRequest: async (request: FastifyRequest) => requireAdmin(request),
  };

  app.post('/workspaces', options, async (request, reply) => {
    const created = await workspaces.create(parseWorkspace(newWorkspace, request.body));
    requestLog(request).info({ workspace: created.databaseName }, 'workspace created');
    await untilInForce(created, { ingest, query }, request);
    return await reply.code(201).send(created);
  });
  app.get<OfWorkspace>(PATH, options, async ({ params }) => await workspaces.find(params.workspaceId));
  app.put<OfWorkspace>(
    PATH,
    options,
    async ({ params, body }) => await workspaces.change(params.workspaceId, parseWorkspace(changedWorkspace, body)),
  );
  app.delete<OfWorkspace>(PATH, options, async (request, reply) => {
    const { workspaceId } = request.params;
    await workspaces.remove(workspaceId);
    requestLog(request).info({ workspaceId }, 'workspace removed, with its keys');
    return await reply.code(200).send();
  });
}
