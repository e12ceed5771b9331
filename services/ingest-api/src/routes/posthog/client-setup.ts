import { Problem } from '@sluice/shared/http/problem';
import { readPosthogKey } from '@sluice/submissions/posthog/posthog-outline';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Counter } from 'prom-client';
import { registerAnyBodyReader } from '../../http/body-reader.ts';
import type { PostCallsOptions } from '../taken-calls.ts';
import { bodyOf, EVENT_BODY_BYTES_MAX } from './post-events.ts';
import { keyOf, renameUnauthorized } from './posthog-keys.ts';

export const FLAG_PATHS = ['/flags', '/decide'] as const;
export const CONFIG_PATH = '/array/:key/config';
export const CONFIG_SCRIPT_PATH = '/array/:key/config.js';
export const STATIC_PATHS = ['/static/:file', '/static/:version/:file'] as const;
export const RECORDINGS_PATH = '/s';

/**
 * Everything but events is off. What posthog-js reads here decides how it sends: with `gzip-js` it compresses, and its
 * requests need no preflight.
 */
export const CLIENT_CONFIG = {
  supportedCompression: ['gzip-js'],
  hasFeatureFlags: false,
  sessionRecording: false,
  surveys: false,
  productTours: false,
  heatmaps: false,
  capturePerformance: false,
  captureDeadClicks: false,
  autocaptureExceptions: false,
  conversations: false,
  errorTracking: { autocaptureExceptions: false, suppressionRules: [] },
  elementsChainAsString: true,
  defaultIdentifiedOnly: true,
  isAuthenticated: false,
  toolbarParams: {},
  siteApps: [],
} as const;

export const NO_FLAGS = { flags: {}, errorsWhileComputingFlags: false } as const;

/** The HTML snippet loads posthog-js itself from here. An empty file would leave the page without a word. */
const NO_CLIENT = "console.error('Sluice does not serve posthog-js: load the package posthog-js instead.');\n";

export interface ClientSetupOptions extends PostCallsOptions {
  readonly ignoredRecordings: Pick<Counter, 'inc'>;
}

/** What PostHog's clients ask for beside sending events: flags, of which there are none, their configuration, scripts. */
export function registerClientSetup(app: FastifyInstance, options: ClientSetupOptions): void {
  registerFlags(app, options);
  app.register(async (instance) => {
    renameUnauthorized(instance);
    const checkKey = (request: FastifyRequest) => options.admission.checkKey((request.params as { key: string }).key);
    instance.get(CONFIG_PATH, async (request) => {
      checkKey(request);
      return CLIENT_CONFIG;
    });
    instance.get(CONFIG_SCRIPT_PATH, async (request, reply) => {
      checkKey(request);
      return await reply.type('text/javascript; charset=utf-8').send('');
    });
    for (const path of STATIC_PATHS) {
      instance.get(path, async (request, reply) => {
        const { file } = request.params as { file: string };
        if (!file.endsWith('.js')) throw new Problem('not_found', 'There is nothing here.');
        const script = file === 'array.js' || file === 'array.full.js' ? NO_CLIENT : '';
        return await reply.type('text/javascript; charset=utf-8').send(script);
      });
    }
  });
  // Recordings of sessions are not read: the response is sent before their bodies.
  app.post(RECORDINGS_PATH, {
    onRequest: async (_request, reply) => {
      options.ignoredRecordings.inc();
      return await reply.code(200).send({ status: 1 });
    },
    handler: async () => undefined,
  });
}

function registerFlags(app: FastifyInstance, { admission, turns, bodyBytesMax }: PostCallsOptions): void {
  app.register(async (instance) => {
    renameUnauthorized(instance);
    registerAnyBodyReader(instance, Math.min(EVENT_BODY_BYTES_MAX, bodyBytesMax));
    const onRequest = admission.admitCalls(() => undefined);
    for (const path of FLAG_PATHS) {
      instance.post(path, { onRequest }, async (request) => {
        const body = bodyOf(request);
        const key = await turns.read(request.network ?? '', body, (pause) => readPosthogKey(body, pause));
        admission.checkKey(keyOf(request, key));
        return NO_FLAGS;
      });
    }
  });
}
