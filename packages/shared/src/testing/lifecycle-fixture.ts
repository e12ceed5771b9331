import { setTimeout as delay } from 'node:timers/promises';
import { type Component, runService } from '../lifecycle.ts';
import { createLogger } from '../log.ts';

const options = JSON.parse(process.argv[2] ?? '{}') as { stopMs?: number; failing?: boolean };

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

runService({
  logger: createLogger('fixture', 'info'),
  components: [component('first', 0), component('second', options.stopMs ?? 0, options.failing)],
  shutdownTimeoutMs: 1_000,
  exitOnStdinEnd: true,
});
