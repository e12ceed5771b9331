import { authenticate } from '@sluice/shared/http/authentication';
import type { KeyRing } from '@sluice/shared/keys/key-ring';
import type { FastifyRequest } from 'fastify';

/**
 * The one workspace that a request may read: its key's, or without any credential the one that is open to all.
 *
 * @throws {Problem} `unauthorized` or `missing_scope`; a wrong key is refused also where reading needs none
 */
export function workspaceOf(request: FastifyRequest, keys: KeyRing, anonymousWorkspace: string | undefined): string {
  if (request.headers.authorization === undefined && anonymousWorkspace !== undefined) return anonymousWorkspace;
  return authenticate(request, keys, 'query').workspace;
}
