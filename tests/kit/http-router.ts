import { once } from 'node:events';
import { Agent, createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

export interface HttpRouter extends AsyncDisposable {
  readonly url: string;
}

/**
 * Starts a proxy that passes each request on to a server of its own, as a load balancer does.
 *
 * @param choose returns the address of the server for a request with this body
 */
export async function startHttpRouter(choose: (body: string) => string): Promise<HttpRouter> {
  const agent = new Agent();
  const server = createServer(async (incoming, outgoing) => {
    const body = await buffer(incoming);
    const { method, headers } = incoming;
    const upstream = request(new URL(incoming.url ?? '/', choose(String(body))), { method, headers, agent });
    upstream.on('error', () => outgoing.destroy());
    upstream.on('response', (response) => {
      outgoing.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(outgoing);
    });
    upstream.end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      agent.destroy();
      await once(server, 'close');
    },
  };
}
