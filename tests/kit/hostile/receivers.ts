import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** What a receiver of webhooks does, by the path that it is called at. */
const RECEIVERS = {
  /** Takes each delivery, after a while. */
  slow: async (response: ServerResponse) => {
    await delay(300);
    response.writeHead(204).end();
  },
  /** A success whose body has no end. */
  endless: async (response: ServerResponse) => {
    response.writeHead(200);
    const piece = Buffer.alloc(16_384, 'x');
    while (!response.destroyed) if (!response.write(piece)) await Promise.race([once(response, 'drain'), delay(1_000)]);
  },
  redirect: async (response: ServerResponse) => {
    response.writeHead(307, { location: '/redirect' }).end();
  },
  /** Nothing comes at all. */
  silent: async () => undefined,
  /** A header, and then nothing. */
  unfinished: async (response: ServerResponse) => {
    response.writeHead(200, { 'content-length': '100' }).write('x');
  },
  cut: async (response: ServerResponse) => {
    response.destroy();
  },
} as const satisfies Record<string, (response: ServerResponse) => Promise<void>>;

type Behaviour = keyof typeof RECEIVERS;

export const BEHAVIOURS = Object.keys(RECEIVERS) as readonly Behaviour[];

/** Receivers of webhooks that do what receivers should not. */
export class Receivers implements AsyncDisposable {
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(): Promise<Receivers> {
    const server = createServer((request, response) => {
      request.resume();
      // The sender may leave at any time.
      for (const stream of [request, response]) stream.on('error', () => undefined);
      void RECEIVERS[(request.url ?? '').slice(1) as Behaviour]?.(response).catch(() => response.destroy());
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new Receivers(server);
  }

  /** Its receivers are paths of it. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
