import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** What happens to a response. */
export type Fate = 'deliver' | 'cut' | 'stall';

export interface TcpProxy extends AsyncDisposable {
  readonly port: number;
  stop(): Promise<void>;
}

/**
 * Listens on a free port of 127.0.0.1 and connects each client to the target. `relay` passes data on in both directions.
 * When one side ends, so does the other.
 */
export async function startTcpProxy(
  target: { readonly host: string; readonly port: number },
  relay: (client: Socket, upstream: Socket) => void,
): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect(target.port, target.host);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    relay(client, upstream);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  async function stop(): Promise<void> {
    server.close();
    for (const socket of sockets) socket.destroy();
    await once(server, 'close');
  }
  return { port: (server.address() as AddressInfo).port, stop, [Symbol.asyncDispose]: stop };
}
