import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser } from 'playwright-core';
import { launchChromium } from './chromium.ts';

/** The hosts whose pages tests serve. Each is a secure context, as all of localhost. */
const HOSTS = ['app.localhost', 'sluice.localhost'] as const;

const served = new Map<string, RequestListener>();

/** With the files of the worker before, as vitest keeps modules of a tier that is not isolated. */
let browser: Promise<Browser> | undefined;

/** Returns the Chromium of this worker, which ends with the worker. A test closes the contexts that it opens. */
export async function sharedBrowser(): Promise<Browser> {
  browser ??= start();
  try {
    const running = await browser;
    if (running.isConnected()) return running;
  } catch (error) {
    browser = undefined;
    throw error;
  }
  browser = undefined;
  return await sharedBrowser();
}

/** Serves the pages of a host in the shared Chromium, on the port 80, until it is disposed of. */
export function serveHost(host: (typeof HOSTS)[number], listener: RequestListener): Disposable {
  if (served.has(host)) throw new Error(`${host} is served already`);
  served.set(host, listener);
  return { [Symbol.dispose]: () => void served.delete(host) };
}

async function start(): Promise<Browser> {
  const server = createServer((request, response) => {
    const listener = served.get(request.headers.host ?? '');
    if (listener) listener(request, response);
    else response.writeHead(404).end();
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, '127.0.0.1', resolve);
  await promise;
  const { port } = server.address() as AddressInfo;
  const chromium = await launchChromium(HOSTS.map((host) => `MAP ${host}:80 127.0.0.1:${port}`).join(', '));
  chromium.on('disconnected', () => {
    server.closeAllConnections();
    server.close();
  });
  return chromium;
}
