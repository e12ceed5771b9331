import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { LocalStackError, systemErrorCode } from './errors.ts';

// Below every system's ephemeral range, so that no outgoing connection takes a port while its server restarts.
const PORT_MIN = 15_000;
const PORT_MAX = 31_999;
const ATTEMPTS_MAX = 200;

/**
 * Each process looks in a block of its own first. Two processes that looked anywhere at the same moment would now and
 * then find the same port, since neither listens on it yet.
 */
const BLOCK_PORTS = 100;
const BLOCKS = Math.floor((PORT_MAX + 1 - PORT_MIN) / BLOCK_PORTS);
let nextPort = PORT_MIN + (process.pid % BLOCKS) * BLOCK_PORTS + randomInt(BLOCK_PORTS);

/**
 * Whether a server can listen on `port` of `host` now.
 *
 * @throws any error but "taken" and "not allowed"
 */
export async function isPortFree(port: number, host = '127.0.0.1'): Promise<boolean> {
  const server = createServer();
  try {
    server.listen({ port, host, exclusive: true });
    await once(server, 'listening');
    return true;
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === 'EADDRINUSE' || code === 'EACCES') return false;
    throw error;
  } finally {
    await new Promise<void>((resolve) => server.close(() => resolve()));
  }
}

/** `count` different ports that are free on 127.0.0.1 now, outside the range of outgoing connections. */
export async function findFreePorts(count: number): Promise<number[]> {
  const found: number[] = [];
  for (let attempt = 0; found.length < count; attempt += 1) {
    if (attempt >= ATTEMPTS_MAX + count) throw new Error(`no ${count} free ports between ${PORT_MIN} and ${PORT_MAX}`);
    const port = nextPort;
    nextPort = port < PORT_MAX ? port + 1 : PORT_MIN;
    if (await isPortFree(port)) found.push(port);
  }
  return found;
}

/**
 * Makes sure that `port` of 127.0.0.1 is free before an engine starts on it. Otherwise the server that holds the port
 * could answer the probe of the engine.
 *
 * @throws LocalStackError PORT_TAKEN
 */
export async function requireFreePort(port: number, engine: string): Promise<void> {
  if (await isPortFree(port)) return;
  throw new LocalStackError('PORT_TAKEN', `${engine} cannot start: port ${port} of 127.0.0.1 is taken.`);
}
