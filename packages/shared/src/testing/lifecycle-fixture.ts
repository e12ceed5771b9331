import { setTimeout as delay } from 'node:timers/promises';
import { type Part, runService } from '../lifecycle.ts';
import { createLogger } from '../log.ts';

const options = JSON.parse(process.argv[2] ?? '{}') as { stopMs?: number; failing?: boolean };

function part(name: string, stopMs: number, failing = false): Part {
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
  parts: [part('first', 0), part('second', options.stopMs ?? 0, options.failing)],
  shutdownTimeoutMs: 1_000,
  exitOnStdinEnd: true,
});
