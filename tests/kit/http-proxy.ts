import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { type ListeningServer, listening } from './http-server.ts';

/**
 * What happens to a request.
 * - `forward`: the server gets it, and the client the response
 * - `lose`: the server gets it, and the client no response
 * - `refuse`: the connection is closed before the server gets anything
 * - `stall`: nobody gets anything
 * - a response: the proxy responds itself
 */
export type RequestFate =
  | 'forward'
  | 'lose'
  | 'refuse'
  | 'stall'
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string };

/** A request with calls, as the proxy saw it. */
export interface SeenRequest {
  readonly calls: readonly Readonly<Record<string, unknown>>[];
  readonly isCompressed: boolean;
  /** In milliseconds of `performance.now()`. */
  readonly startedAt: number;
  /** When its response began, or the client gave up. */
  endedAt: number | undefined;
}

export interface HttpProxy extends ListeningServer {
  readonly requests: readonly SeenRequest[];
}

/**
 * Starts a proxy before the routes of calls.
 *
 * @param decide called with each request when its body has arrived, and how many there were before
 * @param delayMs how long each request takes in addition
 */
export async function startHttpProxy(
  targetUrl: string,
  decide: (request: SeenRequest, index: number) => RequestFate,
  delayMs = 0,
): Promise<HttpProxy> {
  const requests: SeenRequest[] = [];
  const server = createServer((request, response) => {
    void relay(request, response).catch(() => response.destroy());
  });

  async function relay(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const startedAt = performance.now();
    const body = await buffer(request);
    // A preflight.
    if (request.method === 'OPTIONS') return await forward(request, response, undefined, 'forward', () => undefined);
    const isCompressed = body[0] === 0x1f;
    const { batch } = JSON.parse(String(isCompressed ? gunzipSync(body) : body)) as { batch: SeenRequest['calls'] };
    const seen: SeenRequest = { calls: batch, isCompressed, startedAt, endedAt: undefined };
    const fate = decide(seen, requests.push(seen) - 1);
    const end = () => {
      seen.endedAt ??= performance.now();
    };
    response.once('close', end);
    await delay(delayMs);
    if (fate === 'stall') return;
    if (fate === 'forward' || fate === 'lose') await forward(request, response, body, fate, end);
    else {
      end();
      if (fate === 'refuse') response.destroy();
      else response.writeHead(fate.status, fate.headers).end(fate.body);
    }
  }

  async function forward(
    request: IncomingMessage,
    response: ServerResponse,
    body: Buffer | undefined,
    fate: 'forward' | 'lose',
    end: () => void,
  ): Promise<void> {
    const { method = 'POST', url = '', headers } = request;
    const { host: _, connection: __, 'content-length': ___, ...others } = headers as Record<string, string>;
    const init = { method, headers: others, ...(body && { body: new Uint8Array(body) }) };
    const answer = await fetch(new URL(url, targetUrl), init);
    const text = await answer.text();
    end();
    if (fate === 'lose') response.destroy();
    else response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(text);
  }

  return { ...(await listening(server)), requests };
}
