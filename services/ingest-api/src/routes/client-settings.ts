import { unauthorized } from '@sluice/shared/http/authentication';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Counter } from 'prom-client';
import type { Admission } from '../http/admission.ts';
import { callKeyOf } from '../http/call-keys.ts';
import { ignoreRequests } from './ignored-requests.ts';

/** Clients that ask for these with a host of theirs put it before `/projects` or `/v1/projects`. */
export const SETTINGS_PATHS = ['/v1/projects/:key/settings', '/projects/:key/settings'] as const;

/** What clients say of themselves: figures and errors. */
export const TELEMETRY_PATHS = ['/v1/m', '/m', '/rsaMetrics'] as const;

const UPDATED_AT = '2026-01-01T00:00:00.000Z';

const SOURCE = {
  id: 'sluice',
  name: 'Sluice',
  enabled: true,
  workspaceId: 'sluice',
  config: { statsCollection: { errors: { enabled: false }, metrics: { enabled: false } } },
  connections: [],
  destinations: [],
  updatedAt: UPDATED_AT,
  // RudderStack's client for Kotlin reads nothing without it. It uses the key that it has been given.
  writeKey: '',
};

/**
 * Returns what Segment's clients ask for before they send anything. Those for Kotlin and Swift send to the host that is
 * named here, and without one to Segment's, whatever they are configured with. They send figures about themselves to Segment
 * unless the rate of these is 0.
 *
 * @param key the API key, as the client has it
 */
export function settingsFor(key: string, host: string) {
  return {
    integrations: { 'Segment.io': { apiKey: key, apiHost: `${host}/v1` } },
    plan: {},
    edgeFunction: {},
    metrics: { sampleRate: 0 },
  };
}

/**
 * `GET /sourceConfig`: RudderStack's browser client asks for its source before it sends anything. Every key has the same
 * one, without destinations. It says nothing about the key.
 */
export function registerSourceConfig(app: FastifyInstance, admission: Admission): void {
  const onRequest = admission.admitCalls(callKeyOf);
  app.get('/sourceConfig', { onRequest }, async (request) => {
    if (!request.apiKey) throw unauthorized('An API key is needed: as Authorization, or as writeKey in the query.');
    return { source: { ...SOURCE }, updatedAt: UPDATED_AT };
  });
}

/**
 * The settings of Segment's clients, for every key: whoever does not get them sends elsewhere, and a wrong key is refused
 * with the calls.
 */
export function registerSettings(app: FastifyInstance, ignoredRequests: Pick<Counter, 'inc'>): void {
  for (const path of SETTINGS_PATHS) {
    app.get(path, async (request: FastifyRequest, reply) => {
      // The response names the host of the request: no cache may have it for others.
      reply.header('cache-control', 'no-store');
      return settingsFor((request.params as { key: string }).key, request.host);
    });
  }
  for (const url of TELEMETRY_PATHS) ignoreRequests(app, { method: 'POST', url }, { success: true }, ignoredRequests);
}
