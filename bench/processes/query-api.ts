import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { findFreePorts } from '@sluice/local-stack/ports';
import { type Service, startService } from '../../tests/kit/service.ts';

/** Longer than any query takes, so that slow queries show their time, in milliseconds. */
export const QUERY_TIMEOUT_MS = 120_000;

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

/** query-api as a process, which serves everyone the records of one workspace. */
export class QueryApi implements AsyncDisposable {
  readonly #service: Service;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });

  /**
   * @param clickHouseUrl undefined where a file of servers has the addresses
   * @param env added to its environment
   */
  static async start(
    clickHouseUrl: string | undefined,
    database: string,
    workspace: string,
    env: Readonly<Record<string, string>> = {},
  ): Promise<QueryApi> {
    const [port = 0] = await findFreePorts(1);
    const service = startService('query-api', port, {
      ...(clickHouseUrl !== undefined && { CLICKHOUSE_URL: clickHouseUrl }),
      CLICKHOUSE_DATABASE: database,
      QUERY_ANONYMOUS_WORKSPACE: workspace,
      QUERY_TIMEOUT_MS: String(QUERY_TIMEOUT_MS),
      LOG_LEVEL: 'warn',
      ...env,
    });
    await service.ready();
    return new QueryApi(service);
  }

  private constructor(service: Service) {
    this.#service = service;
  }

  get pid(): number {
    return this.#service.pid;
  }

  get url(): string {
    return this.#service.url;
  }

  async get(path: string, parameters: Readonly<Record<string, string>>): Promise<PageResponse> {
    const startedAt = performance.now();
    const response = await send(`${this.url}${path}?${new URLSearchParams({ ...parameters })}`, this.#agent);
    let text = '';
    let firstMs: number | undefined;
    for await (const chunk of response.setEncoding('utf8')) {
      text += chunk;
      if (firstMs === undefined && text.includes('"results":[{')) firstMs = performance.now() - startedAt;
    }
    const ms = performance.now() - startedAt;
    return { status: response.statusCode ?? 0, firstMs: firstMs ?? ms, ms, body: JSON.parse(text) };
  }

  /** Gets the newest events without their total. */
  async newestPage(): Promise<PageResponse> {
    return await this.get('/events', { total: 'none' });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy();
    await this.#service.stop();
  }
}

/** Sends a request over a connection that stays open. Resolves with the response, whose body is still to be read. */
export async function send(url: string, agent: Agent): Promise<IncomingMessage> {
  const sent = request(url, { agent });
  sent.end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  return response;
}
