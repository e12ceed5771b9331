import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';

// In a process of its own: unpatched, nothing else would run in it any more, no timer and no signal handler.
const SCRIPT = `
const createFetchManager = require('kafkajs/src/consumer/fetchManager');
const logger = { namespace: () => logger, debug() {}, info() {} };
let nodeIds = ['1', '2'];
let running = true;
const slow = Promise.withResolvers();
const manager = createFetchManager({
  logger,
  getNodeIds: () => nodeIds,
  handler: async () => {},
  // As kafkajs's runner does: a consumer that does not run fetches nothing, at once.
  fetch: async (nodeId) => {
    if (!running) return [];
    if (nodeId === '2') await slow.promise;
    await new Promise((resolve) => setTimeout(resolve, 5));
    return [];
  },
});
const ended = manager.start();
setTimeout(() => { nodeIds = ['1', '2', '3']; }, 50);
setTimeout(() => { running = false; manager.stop(); }, 100);
setTimeout(() => slow.resolve(), 150);
ended.then(() => process.exit(0), () => process.exit(3));
`;

test('a consumer that is stopped while a broker joins the cluster ends', async () => {
  const child = spawn(process.execPath, ['--eval', SCRIPT], { cwd: import.meta.dirname, stdio: 'inherit' });
  const timer = setTimeout(() => child.kill('SIGKILL'), 60_000);
  const [code] = await once(child, 'exit');
  clearTimeout(timer);
  expect(code).toBe(0);
});
