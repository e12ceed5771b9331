import type { Logger } from '../base/log.ts';
import { atMost } from '../base/retry.ts';
import { tracingSdk } from '../tracing/tracer.ts';

/** A component of a service that is started and stopped. `start` and `stop` may be called more than once. */
export interface Component {
  readonly name: string;
  start(): Promise<void>;
  /** Ends the component's work: drains, flushes, closes. */
  stop(): Promise<void>;
}

export interface ServiceOptions {
  readonly logger: Logger;
  /** In the order in which they start; they stop in reverse. */
  readonly components: readonly Component[];
  /** How long stopping may take before the process exits all the same, in milliseconds. */
  readonly shutdownTimeoutMs: number;
  /** Stop when standard input ends, so that the service never outlives the process that holds its other end. */
  readonly exitOnStdinEnd: boolean;
}

/** How long a service that stops waits for a collector of spans at most, in milliseconds. */
const EXPORT_MS_MAX = 2_000;

/**
 * Runs a service until it is told to stop: starts its components in order, then waits for SIGTERM or SIGINT (or the end of
 * standard input), and stops them in reverse order. Exit codes: 0 after a clean stop, 1 when a component failed to start or
 * to stop, or when stopping took too long, 130 when a second signal came.
 */
export function runService(options: ServiceOptions): Service {
  const service = new Service(options);
  process.on('SIGTERM', () => service.signal('SIGTERM'));
  process.on('SIGINT', () => service.signal('SIGINT'));
  process.on('uncaughtException', (error) => service.fail(error));
  process.on('unhandledRejection', (error) => service.fail(error));
  if (options.exitOnStdinEnd) {
    process.stdin.on('end', () => service.stop('end of standard input'));
    process.stdin.on('error', () => undefined);
    process.stdin.resume();
  }
  void service.start();
  return service;
}

class Service {
  readonly #options: ServiceOptions;
  #stopping = false;
  #signalled = false;

  constructor(options: ServiceOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    try {
      for (const component of this.#options.components) {
        if (this.#stopping) return;
        await component.start();
      }
    } catch (error) {
      this.fail(error);
    }
  }

  /** Reports a failure that only a restart can mend. */
  fail(error: unknown): void {
    if (this.#stopping) return;
    this.#options.logger.fatal({ err: error }, 'cannot go on');
    void this.#shutDown('failure', 1);
  }

  /** Stops the service; does nothing when it stops already. */
  stop(reason: string): void {
    if (!this.#stopping) void this.#shutDown(reason, 0);
  }

  signal(name: 'SIGTERM' | 'SIGINT'): void {
    if (this.#signalled) {
      this.#options.logger.warn({ reason: name }, 'told to stop again: exiting at once');
      exit(130);
    }
    this.#signalled = true;
    this.stop(name);
  }

  async #shutDown(reason: string, exitCode: number): Promise<void> {
    const { logger, components, shutdownTimeoutMs } = this.#options;
    this.#stopping = true;
    logger.info({ reason }, 'stopping');
    const endsAt = performance.now() + shutdownTimeoutMs;
    const deadline = setTimeout(() => {
      logger.error({ shutdownTimeoutMs }, 'stopping took too long: exiting');
      exit(1);
    }, shutdownTimeoutMs);
    let code = exitCode;
    for (const component of components.toReversed()) {
      try {
        await component.stop();
      } catch (error) {
        logger.error({ err: error, component: component.name }, 'a component did not stop cleanly');
        code = 1;
      }
    }
    await exportSpans(endsAt - performance.now());
    clearTimeout(deadline);
    logger.info('stopped');
    exit(code);
  }
}

/** Ends the process. Flushing the log fails when nobody reads it any more, and must not keep the process alive. */
function exit(code: number): never {
  try {
    process.exit(code);
  } catch {
    // The second call runs no exit listeners, the flushing of the log among them.
    process.exit(code);
  }
}

/**
 * Before the process ends: exports the spans that have ended, which the SDK gathers. It gives up in time.
 *
 * @param leftMs how much time is left to end, in milliseconds
 */
async function exportSpans(leftMs: number): Promise<void> {
  const exported = tracingSdk()?.shutdown();
  if (exported) await atMost(Math.min(leftMs / 2, EXPORT_MS_MAX), exported).catch(() => undefined);
}
