import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { findPortHolder } from './port-holder.ts';
import { findFreePorts } from './ports.ts';

async function listen(port: number, host: string): Promise<Server> {
  const server = createServer().listen(port, host);
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return server;
}

test.each(['127.0.0.1', '0.0.0.0', '::'])('the process that listens at %s is found', async (host) => {
  const [port = 0] = await findFreePorts(1);
  await listen(port, host);
  const holder = await findPortHolder(port);
  expect(holder?.pid).toBe(process.pid);
  expect(holder?.command).toContain('node');
});

test('nobody holds a free port', async () => {
  const [port = 0] = await findFreePorts(1);
  expect(await findPortHolder(port)).toBeUndefined();
});
