import { hash, timingSafeEqual } from 'node:crypto';
import { sleep } from '@sluice/shared/base/retry';
import { unauthorized } from '@sluice/shared/http/authentication';
import { Problem } from '@sluice/shared/http/problem';
import { requestLog } from '@sluice/shared/http/server';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { TrenchConfig } from '../config.ts';
import type { Service } from '../upstream/service.ts';
import { type CreatedWorkspace, changedWorkspace, newWorkspace, parseWorkspace } from './workspace-body.ts';
import { Workspaces } from './workspaces.ts';

/** The largest body, in bytes: every service reads the keys file whenever it changes. */
export const WORKSPACE_BODY_BYTES_MAX = 16 * 1_024;

/** Services follow the keys file within a second. After this time a response no longer waits for them, in milliseconds. */
const WAIT_MS_MAX = 5_000;
const POLL_INTERVAL_MS = 100;

const EMPTY = '{"batch":[]}';

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

/**
 * Creates what lets a request with the admin key pass.
 *
 * @param adminKey `undefined`: no key is the admin's
 */
function createAdminCheck(adminKey: string | undefined): (request: FastifyRequest) => void {
  const wanted = adminKey === undefined ? undefined : digest(adminKey);
  /** @throws {Problem} `unauthorized`, also with a key that is valid elsewhere */
  return (request) => {
    const given = digest(request.key);
    if (wanted === undefined || !timingSafeEqual(given, wanted)) throw unauthorized('The admin key is needed.');
  };
}

/** Both sides have one length, whatever the key. */
function digest(key: string): Buffer {
  return hash('sha256', key, 'buffer');
}

/**
 * Waits until both services know the keys of a new workspace, so that a client can use them at once. Of several processes
 * of a service, one knows them then.
 */
async function untilInForce(
  { publicApiKey, privateApiKey }: CreatedWorkspace,
  { ingest, query }: { readonly ingest: Service; readonly query: Service },
  of: FastifyRequest,
): Promise<void> {
  const deadline = performance.now() + WAIT_MS_MAX;
  await Promise.all([
    until(deadline, () => ingest.send({ method: 'POST', path: '/v1/batch', key: publicApiKey, body: EMPTY, of })),
    until(deadline, () => query.send({ method: 'GET', path: '/events?limit=0&total=none', key: privateApiKey, of })),
  ]);
}

/** Resolves once the key is known. Where a service cannot be reached, it will know the key when it can. */
async function until(deadline: number, send: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await send();
      return;
    } catch (error) {
      if (!(error instanceof Problem && error.code === 'unauthorized')) return;
    }
    if (performance.now() > deadline) return;
    await sleep(POLL_INTERVAL_MS);
  }
}
