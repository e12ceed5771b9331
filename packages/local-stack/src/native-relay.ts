import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export interface NativeRelay {
  /** On 127.0.0.1. */
  readonly port: number;
  /**
   * Passes nothing on until the returned function is called: the engine looks frozen to its clients. Those that connect
   * meanwhile wait, and are cut off then: the engine, `clickhouse local`, aborts when it gets their requests after they have left.
   */
  freeze(): () => void;
  stop(): Promise<void>;
}

interface Pair {
  readonly client: Socket;
  readonly engine: Socket;
}

/**
 * Listens on a free port for the native protocol of a local engine, and ends each connection to the engine in order, also
 * when the client resets its own. `clickhouse local` ends itself when a connection is reset, where a server only logs
 * it; and a server resets a connection to another one when a statement over both fails before it has read everything.
 */
export async function startNativeRelay(tcpPort: number): Promise<NativeRelay> {
  const pairs = new Set<Pair>();
  const waiting = new Set<Socket>();
  let isFrozen = false;
  const options = { allowHalfOpen: true, noDelay: true } as const;
  const server = createServer(options, (client) => {
    if (isFrozen) {
      waiting.add(client.on('error', () => undefined).on('close', () => waiting.delete(client)));
      return;
    }
    const pair = { client, engine: connect({ ...options, port: tcpPort, host: '127.0.0.1' }) };
    pairs.add(pair);
    for (const socket of [client, pair.engine]) socket.on('error', () => undefined);
    client.on('close', () => {
      pair.engine.end();
      // What the engine still sends is read: otherwise this side would reset the connection.
      pair.engine.resume();
    });
    pair.engine.on('close', () => {
      client.destroy();
      pairs.delete(pair);
    });
    passOn(pair);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    freeze() {
      isFrozen = true;
      for (const { client, engine } of pairs) {
        client.unpipe(engine).pause();
        engine.unpipe(client).pause();
      }
      return () => {
        isFrozen = false;
        for (const client of waiting) client.destroy();
        for (const pair of pairs) passOn(pair);
      };
    },
    async stop() {
      server.close();
      for (const client of waiting) client.destroy();
      for (const { client, engine } of pairs) {
        client.destroy();
        engine.destroy();
      }
      await once(server, 'close');
    },
  };
}

function passOn({ client, engine }: Pair): void {
  if (client.destroyed) return;
  client.pipe(engine);
  engine.pipe(client);
}
