import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** What happens to an answer on its way back. */
export type Fate = 'deliver' | 'cut' | 'stall';

/** A TCP proxy that can lose answers: what was asked has been done, but the asker does not hear of it. */
export interface AnswerProxy {
  readonly url: string;
  readonly lost: number;
  stop(): Promise<void>;
}

/**
 * Starts a proxy in front of an HTTP server. `decide` is asked when an answer begins to come: `cut` closes the
 * connection instead, `stall` leaves it open without another byte.
 */
export async function startProxy(targetUrl: string, decide: () => Fate): Promise<AnswerProxy> {
  const target = new URL(targetUrl);
  const sockets = new Set<Socket>();
  let lost = 0;

  const server = createServer((client) => {
    const upstream = connect(Number(target.port), target.hostname);
    let asked = false;
    let stalled = false;
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.on('data', (chunk) => {
      asked = true;
      upstream.write(chunk);
    });
    upstream.on('data', (chunk) => {
      if (stalled) return;
      const fate = asked ? decide() : 'deliver';
      asked = false;
      if (fate === 'deliver') {
        client.write(chunk);
        return;
      }
      lost += 1;
      if (fate === 'cut') client.destroy();
      else stalled = true;
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    get lost() {
      return lost;
    },
    async stop() {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}
