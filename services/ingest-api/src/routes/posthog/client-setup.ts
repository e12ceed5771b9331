import { Problem } from '@sluice/shared/http/problem';
import { readPosthogKey } from '@sluice/submissions/calls/posthog/posthog-outline';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Counter } from 'prom-client';
import { registerAnyBodyReader } from '../../http/body-reader.ts';
import type { PostCallsOptions } from '../calls-request.ts';
import { ignoreRequests } from '../ignored-requests.ts';
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

/** Newer clients read `flags`, and those of `/decide/?v=3` the others. */
export const NO_FLAGS = {
  flags: {},
  featureFlags: {},
  featureFlagPayloads: {},
  errorsWhileComputingFlags: false,
  sessionRecording: false,
} as const;

/**
 * What PostHog's clients ask for and send besides events: logs, push tokens, surveys and so on. A path that is new to them
 * is here, too: a client must not take its absence for an outage.
 */
export const IGNORED_PATHS = ['/i/:version/:kind', '/flags/:kind', '/api/:kind', '/api/:kind/:part'] as const;

/** There is nothing of all that a client may ask for. */
export const NOTHING = {
  status: 1,
  flags: [],
  group_type_mapping: {},
  cohorts: {},
  surveys: [],
  earlyAccessFeatures: [],
  experiments: [],
  product_tours: [],
} as const;

/** What may have events: to ignore these would lose them without a word. */
const EVENT_KINDS: readonly string[] = ['e', 'ai', 'analytics', 'batch', 'capture', 'event'];

/** The HTML snippet loads posthog-js itself from here. An empty file would leave the page without a word. */
const NO_CLIENT = "console.error('Sluice does not serve posthog-js: load the package posthog-js instead.');\n";

export interface ClientSetupOptions extends PostCallsOptions {
  readonly ignoredRecordings: Pick<Counter, 'inc'>;
  readonly ignoredRequests: Pick<Counter, 'inc'>;
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
  ignoreRequests(app, { method: 'POST', url: RECORDINGS_PATH }, { status: 1 }, options.ignoredRecordings);
  app.register(async (instance) => {
    instance.addHook('onRequest', async (request) => {
      const { kind } = request.params as { kind: string };
      if (EVENT_KINDS.includes(kind)) throw new Problem('not_found', 'Events are not taken here.');
    });
    for (const url of IGNORED_PATHS) {
      for (const method of ['POST', 'GET'] as const) {
        ignoreRequests(instance, { method, url }, NOTHING, options.ignoredRequests);
      }
    }
  });
}

function registerFlags(app: FastifyInstance, { admission, bodies, bodyBytesMax }: PostCallsOptions): void {
  app.register(async (instance) => {
    renameUnauthorized(instance);
    registerAnyBodyReader(instance, Math.min(EVENT_BODY_BYTES_MAX, bodyBytesMax));
    const onRequest = admission.admitCalls(() => undefined);
    for (const path of FLAG_PATHS) {
      instance.post(path, { onRequest }, async (request) => {
        const body = bodyOf(request);
        const key = await bodies.read(request.network ?? '', body, (pause) => readPosthogKey(body, pause));
        admission.admitBodyKey(request, keyOf(request, key));
        return NO_FLAGS;
      });
    }
  });
}
