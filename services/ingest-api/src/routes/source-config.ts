import { unauthorized } from '@sluice/shared/http/authentication';
import type { FastifyInstance } from 'fastify';
import type { Admission } from '../http/admission.ts';
import { callKeyOf } from '../http/call-keys.ts';

const SOURCE = {
  id: 'sluice',
  name: 'Sluice',
  enabled: true,
  workspaceId: 'sluice',
  config: { statsCollection: { errors: { enabled: false }, metrics: { enabled: false } } },
  connections: [],
  destinations: [],
};

/**
 * `GET /sourceConfig`: RudderStack's browser client asks for its source before it sends anything. Every key has the same
 * one, without destinations. It says nothing about the key.
 */
export function registerSourceConfig(app: FastifyInstance, admission: Admission): void {
  const onRequest = admission.admitCalls(callKeyOf);
  app.get('/sourceConfig', { onRequest }, async (request) => {
    if (!request.apiKey) throw unauthorized('An API key is needed: as Authorization, or as writeKey in the query.');
    return { source: { ...SOURCE }, updatedAt: '2026-01-01T00:00:00.000Z' };
  });
}
