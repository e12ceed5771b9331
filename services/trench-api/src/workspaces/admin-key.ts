import { hash, timingSafeEqual } from 'node:crypto';
import { unauthorized } from '@sluice/shared/http/authentication';
import type { FastifyRequest } from 'fastify';

/**
 * Creates what lets a request with the admin key pass.
 *
 * @param adminKey `undefined`: no key is the admin's
 */
export function createAdminCheck(adminKey: string | undefined): (request: FastifyRequest) => void {
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
