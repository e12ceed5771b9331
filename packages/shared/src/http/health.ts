import type { FastifyInstance } from 'fastify';
import type { Registry } from 'prom-client';

export interface HealthOptions {
  readonly registry: Registry;
  /** Returns what keeps the service from doing its work, each as a short phrase; empty when it is ready. */
  readonly readiness: () => Promise<readonly string[]> | readonly string[];
  /** Returns what an operator should change though the service does its work, a sentence for each. Default none. */
  readonly warnings?: (() => readonly string[]) | undefined;
}

/** What tells how a service is: `GET /livez`, `/readyz` and `/metrics`. */
export class Health {
  readonly #options: HealthOptions;
  #stopping = false;

  constructor(options: HealthOptions) {
    this.#options = options;
  }

  register(app: FastifyInstance): void {
    const { registry } = this.#options;
    app.addHook('preClose', async () => {
      this.#stopping = true;
    });
    app.get('/livez', async () => ({ status: 'ok' }));
    app.get('/readyz', async (_request, reply) => {
      const missing = await this.#missing();
      reply.code(missing.length === 0 ? 200 : 503);
      const found = this.#options.warnings?.() ?? [];
      const warnings = found.length > 0 ? { warnings: found } : {};
      return missing.length === 0 ? { status: 'ok', ...warnings } : { status: 'unavailable', missing, ...warnings };
    });
    app.get('/metrics', async (_request, reply) => {
      reply.type(registry.contentType);
      return await registry.metrics();
    });
  }

  async #missing(): Promise<readonly string[]> {
    return this.#stopping ? ['the service is stopping'] : await this.#options.readiness();
  }
}
