import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { findFreePorts } from '@sluice/local-stack/ports';
import { startService } from '../tests/support/service.ts';
import { TIMEOUT_MS } from './filter-queries.ts';

/** More connections than any benchmark uses at once. */
const CONNECTIONS = 64;

export interface PageResponse {
  readonly status: number;
  /** Until the first record, or the end of a response without one, was received. */
  readonly firstMs: number;
  /** Until the end of the response. */
  readonly ms: number;
  readonly body: { readonly total: number | null; readonly nextCursor: string | null; readonly results: unknown[] };
}

/** query-api as a process, over a database of the benchmark. */
export interface QueryApi extends AsyncDisposable {
  readonly pid: number;
  readonly url: string;
  get(path: string, parameters: Readonly<Record<string, string>>): Promise<PageResponse>;
}

/** Starts query-api, which serves everyone the records of one workspace. */
export async function startQueryApi(clickHouseUrl: string, database: string, workspace: string): Promise<QueryApi> {
  const [port = 0] = await findFreePorts(1);
  const service = startService('query-api', port, {
    CLICKHOUSE_URL: clickHouseUrl,
    CLICKHOUSE_DATABASE: database,
    QUERY_ANONYMOUS_WORKSPACE: workspace,
    QUERY_TIMEOUT_MS: String(TIMEOUT_MS),
    LOG_LEVEL: 'warn',
  });
  await service.ready();
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  return {
    pid: service.pid,
    url: service.url,
    async get(path, parameters) {
      const startedAt = performance.now();
      const response = await send(`${service.url}${path}?${new URLSearchParams({ ...parameters })}`, agent);
      let text = '';
      let firstMs: number | undefined;
      for await (const chunk of response.setEncoding('utf8')) {
        text += chunk;
        if (firstMs === undefined && text.includes('"results":[{')) firstMs = performance.now() - startedAt;
      }
      const ms = performance.now() - startedAt;
      return { status: response.statusCode ?? 0, firstMs: firstMs ?? ms, ms, body: JSON.parse(text) };
    },
    async [Symbol.asyncDispose]() {
      agent.destroy();
      await service.stop();
    },
  };
}

/** Sends a request over a connection that stays open. Resolves with the response, whose body is still to be read. */
export async function send(url: string, agent: Agent): Promise<IncomingMessage> {
  const sent = request(url, { agent });
  sent.end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return response;
}
