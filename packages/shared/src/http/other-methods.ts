import { METHODS } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { Problem } from './problem.ts';

/** Every method that Node reads, except CONNECT, which is for proxies and never becomes a request. */
const ALL_METHODS = METHODS.filter((method) => method !== 'CONNECT');

/** Fastify runs a plugin with this symbol in the app itself, rather than in a new context. */
const SKIP_OVERRIDE = Symbol.for('skip-override');

declare module 'fastify' {
  interface FastifyInstance {
    /** The methods of every path, as the routes declare them. */
    methodsByPath: ReadonlyMap<string, ReadonlySet<string>>;
  }
}

/** Collects the methods of every path in `app.methodsByPath`. Call it before the first route. */
export function collectMethods(app: FastifyInstance): void {
  const methodsByPath = new Map<string, Set<string>>();
  app.decorate('methodsByPath', methodsByPath);
  app.addHook('onRoute', ({ url, method }) => {
    // The CORS plugin's route for preflight requests is no path of the API.
    if (url === '*') return;
    const methods = methodsByPath.get(url) ?? new Set();
    methodsByPath.set(url, methods);
    for (const one of [method].flat()) methods.add(one);
  });
}

/**
 * Responds with `405` and `Allow` to the methods that a path does not have. Call it after the last route or plugin with
 * routes.
 */
export function refuseOtherMethods(app: FastifyInstance): void {
  for (const method of ALL_METHODS) if (!app.supportedMethods.includes(method)) app.addHttpMethod(method);

  // A plugin is loaded after those before it, so that the routes of all of them are known.
  async function refusals(instance: FastifyInstance): Promise<void> {
    const declared = [...instance.methodsByPath].map(([url, methods]) => ({ url, allowed: [...methods] }));
    for (const { url, allowed } of declared) {
      instance.route({
        url,
        method: ALL_METHODS.filter((method) => !allowed.includes(method)),
        // In onRequest, before the body is read.
        onRequest: async () => {
          throw new Problem('method_not_allowed', 'This path does not have that method.', {
            headers: { allow: allowed.join(', ') },
          });
        },
        handler: async () => undefined,
      });
    }
  }

  app.register(Object.assign(refusals, { [SKIP_OVERRIDE]: true }));
}
