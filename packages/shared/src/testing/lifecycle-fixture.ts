import { setTimeout as delay } from 'node:timers/promises';
import { createLogger } from '../base/log.ts';
import { type Component, runService } from '../service/lifecycle.ts';

const options = JSON.parse(process.argv[2] ?? '{}') as {
  stopMs?: number;
  failing?: boolean;
  chatty?: boolean;
};

function component(name: string, stopMs: number, failing = false): Component {
  return {
    name,
    async start() {
      if (failing) throw new Error('cannot start');
      console.log(`${name} started`);
    },
    async stop() {
      await delay(stopMs);
      console.log(`${name} stopped`);
    },
  };
}

const logger = createLogger('fixture', 'info');

/** Logs much as the process ends, which is flushed on exit, and leaves a timer behind, as a client library may. */
function chatty(quiet: Component): Component {
  if (!options.chatty) return quiet;
  return {
    ...quiet,
    async stop() {
      setInterval(() => undefined, 60_000);
      for (let line = 0; line < 100; line += 1) logger.info('stopping slowly');
    },
  };
}

runService({
  logger,
  components: [chatty(component('first', 0)), component('second', options.stopMs ?? 0, options.failing)],
  shutdownTimeoutMs: 1_000,
  exitOnStdinEnd: true,
});
