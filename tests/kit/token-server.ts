import { createServer } from 'node:http';
import { type ListeningServer, listening } from './http-server.ts';

/** Issues tokens for Kafka, as a server of OAuth does. Its tokens have no signature: Kafka takes such, where it is told to. */
export interface TokenServer extends ListeningServer {
  /** The forms that were posted. */
  readonly requests: readonly URLSearchParams[];
  /** How the next requests are answered. Default: a token of an hour for the client of {@link TOKEN_CLIENT}. */
  answer: { readonly seconds?: number; readonly scope?: string; readonly status?: number; readonly body?: string };
}

export const TOKEN_CLIENT = { id: 'sluice: 1', secret: 'secret-of-sluice/+&' };

export async function startTokenServer(): Promise<TokenServer> {
  const requests: URLSearchParams[] = [];
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    requests.push(new URLSearchParams(body));
    const { seconds = 3_600, scope = 'kafka', status = 200 } = tokens.answer;
    const [id = '', secret = ''] = Buffer.from(request.headers.authorization?.replace('Basic ', '') ?? '', 'base64')
      .toString()
      .split(':')
      .map((text) => new URLSearchParams(`t=${text}`).get('t') ?? '');
    if (id !== TOKEN_CLIENT.id || secret !== TOKEN_CLIENT.secret) {
      response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":"invalid_client"}');
      return;
    }
    const now = Math.floor(Date.now() / 1_000);
    const token = `${part({ alg: 'none' })}.${part({ sub: 'sluice', iat: now, exp: now + seconds, scope })}.`;
    const granted = JSON.stringify({ access_token: token, token_type: 'Bearer', expires_in: seconds });
    response.writeHead(status, { 'content-type': 'application/json' }).end(tokens.answer.body ?? granted);
  });
  const listener = await listening(server);
  const tokens: TokenServer = { ...listener, url: `${listener.url}/token`, requests, answer: {} };
  return tokens;
}
