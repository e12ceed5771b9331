import type { Logger } from './log.ts';

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

/**
 * Runs a service until it is told to stop: starts its components in order, then waits for SIGTERM or SIGINT (or the end of
 * standard input), and stops them in reverse order. Exit codes: 0 after a clean stop, 1 when a component failed to start or
 * to stop, or when stopping took too long, 130 when a second signal came.
 *
 * Returns `fail`, with which a component reports a failure that only a restart can mend, and `stop`, which stops the service
 * and does nothing when it stops already.
 */
export function runService({ logger, components, shutdownTimeoutMs, exitOnStdinEnd }: ServiceOptions): {
  fail(error: unknown): void;
  stop(reason: string): void;
} {
  let stopping = false;
  let signalled = false;

  async function shutDown(reason: string, exitCode: number): Promise<void> {
    stopping = true;
    logger.info({ reason }, 'stopping');
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
    clearTimeout(deadline);
    logger.info('stopped');
    exit(code);
  }

  async function startAll(): Promise<void> {
    for (const component of components) {
      if (stopping) return;
      await component.start();
    }
  }

  function fail(error: unknown): void {
    if (stopping) return;
    logger.fatal({ err: error }, 'cannot go on');
    void shutDown('failure', 1);
  }

  function stop(reason: string): void {
    if (!stopping) void shutDown(reason, 0);
  }

  function onSignal(reason: string): void {
    if (signalled) {
      logger.warn({ reason }, 'told to stop again: exiting at once');
      exit(130);
    }
    signalled = true;
    stop(reason);
  }

  process.on('SIGTERM', () => onSignal('SIGTERM'));
  process.on('SIGINT', () => onSignal('SIGINT'));
  process.on('uncaughtException', fail);
  process.on('unhandledRejection', fail);
  if (exitOnStdinEnd) {
    process.stdin.on('end', () => stop('end of standard input'));
    process.stdin.on('error', () => undefined);
    process.stdin.resume();
  }
  startAll().catch(fail);
  return { fail, stop };
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
