import { Agent, createServer, type IncomingMessage, request } from 'node:http';
import { pipeline } from 'node:stream';
import { type ListeningServer, listening } from './http-server.ts';

/** When `onStatement` is called: before ClickHouse gets the statement, or when its response begins. */
export type Moment = 'before' | 'after';

/** A proxy in front of ClickHouse that knows the statements of a writer, and of `sluice servers copy` and
 * `servers compare --mend`, by their names. */
export type StatementProxy = ListeningServer;

/**
 * Starts a proxy in front of ClickHouse. `onStatement` is called at both moments of each statement that has a name, and
 * holds it until it resolves. If it throws, the connection is cut, and the disposal of the proxy throws the error.
 */
export async function startStatementProxy(
  clickhouseUrl: string,
  onStatement: (name: string, moment: Moment) => Promise<void>,
): Promise<StatementProxy> {
  const agent = new Agent();
  const errors: unknown[] = [];

  async function passes(incoming: IncomingMessage, moment: Moment): Promise<boolean> {
    const name = statementName(incoming.url ?? '');
    try {
      if (name !== undefined) await onStatement(name, moment);
      return true;
    } catch (error) {
      errors.push(error);
      incoming.socket.destroy();
      return false;
    }
  }

  const server = createServer(async (incoming, outgoing) => {
    if (!(await passes(incoming, 'before'))) return;
    const { method, headers } = incoming;
    const upstream = request(new URL(incoming.url ?? '/', clickhouseUrl), { method, headers, agent });
    upstream.on('error', () => incoming.socket.destroy());
    // Destroys the request to ClickHouse when the client disconnects before it has sent everything.
    pipeline(incoming, upstream, () => undefined);
    upstream.on('response', async (response) => {
      if (!(await passes(incoming, 'after'))) return;
      outgoing.writeHead(response.statusCode ?? 502, response.headers);
      response.pipe(outgoing);
    });
  });
  const listener = await listening(server);
  return {
    url: listener.url,
    async [Symbol.asyncDispose]() {
      agent.destroy();
      await listener[Symbol.asyncDispose]();
      if (errors.length > 0) throw errors[0];
    },
  };
}

/** Their query ids end in the name of the statement and a UUID. */
function statementName(url: string): string | undefined {
  const queryId = new URLSearchParams(url.slice(url.indexOf('?'))).get('query_id') ?? '';
  return /^sluice-(writer|copy|mend)\//.test(queryId) ? queryId.split('/').at(-2) : undefined;
}
