import { Agent, createServer, request } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { type ListeningServer, listening } from './http-server.ts';

/**
 * Starts a proxy that passes each request on to a server of its own, as a load balancer does.
 *
 * @param choose returns the address of the server for a request with this body to this path
 * @param change what becomes of a piece of a response. Default: nothing
 */
export async function startHttpRouter(
  choose: (body: string, path: string) => string,
  change = (piece: Buffer) => piece,
): Promise<ListeningServer> {
  const agent = new Agent();
  const server = createServer(async (incoming, outgoing) => {
    const body = await buffer(incoming);
    const { method, headers, url = '/' } = incoming;
    const upstream = request(new URL(url, choose(String(body), url)), { method, headers, agent });
    upstream.on('error', () => outgoing.destroy());
    upstream.on('response', (response) => {
      outgoing.writeHead(response.statusCode ?? 502, response.headers);
      response.on('data', (piece) => outgoing.write(change(piece))).on('end', () => outgoing.end());
    });
    upstream.end(body);
  });
  const listener = await listening(server);
  return {
    url: listener.url,
    async [Symbol.asyncDispose]() {
      agent.destroy();
      await listener[Symbol.asyncDispose]();
    },
  };
}
