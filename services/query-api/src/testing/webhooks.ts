import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer, Server as SecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createLogger } from '@sluice/shared/base/log';
import { type ClickHouseClient, createClickHouse } from '@sluice/shared/clickhouse/client';
import { WEBHOOKS_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import type { TestDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { createReadiness } from '../store/schema.ts';
import type { Webhook } from '../webhooks/webhook.ts';
import {
  administratorOf,
  connectReader,
  connectWebhooks,
  insertInto,
  type QueryService,
  startApp,
} from './query-service.ts';

/**
 * What services of tests have that deliver to this machine, quickly. A machine that stalls must not end a lease: what was
 * delivered last would come again.
 */
export const WEBHOOKS_ENV = {
  ...WEBHOOKS_ACCOUNT,
  ...{ WEBHOOK_ALLOW_NETWORKS: '127.0.0.1', WEBHOOK_RETRY_MS_MAX: '1000', STREAM_INTERVAL_MS: '50' },
  WEBHOOK_LEASE_MS: '60000',
} as const;

/** Returns a webhook of the workspace `a`, as it is stored. */
export function aWebhook(id: string): Webhook {
  return {
    ...{ id, workspace: 'a', kind: 'events', url: 'https://example.com/', filter: {}, batched: false, content: {} },
    ...{ secret: 's', previousSecret: '', previousSecretUntilMs: 0, createdAtMs: 1e12 },
  };
}

/** A request that a receiver got. */
export interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Treats a request; without a response the sender waits. */
export type Behaviour = (received: Received, response: ServerResponse) => void;

export const accept: Behaviour = (_, response) => response.writeHead(204).end();

export const refuse: Behaviour = (_, response) => response.writeHead(500).end();

/** A server that deliveries are sent to. */
export class Receiver implements AsyncDisposable {
  readonly received: Received[] = [];
  behaviour: Behaviour = accept;
  readonly #server: Server;

  private constructor(server: Server) {
    this.#server = server;
    server.on('request', async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk as Buffer);
      const received = { headers: request.headers, body: Buffer.concat(chunks).toString() };
      this.received.push(received);
      this.behaviour(received, response);
    });
  }

  static start(address = '127.0.0.1', port = 0): Promise<Receiver> {
    return Receiver.#listen(createServer(), address, port);
  }

  /** Starts one that is reached by https. */
  static startSecure(certificate: { readonly cert: string; readonly key: string }): Promise<Receiver> {
    return Receiver.#listen(createSecureServer(certificate), '127.0.0.1', 0);
  }

  static async #listen(server: Server, address: string, port: number): Promise<Receiver> {
    server.listen(port, address);
    await once(server, 'listening');
    return new Receiver(server);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `${this.#server instanceof SecureServer ? 'https' : 'http'}://127.0.0.1:${this.port}/events`;
  }

  /** The uuids of the events of all requests that got a 2xx or any other answer, in their order. */
  get uuids(): readonly string[] {
    return this.received.flatMap(({ body }) => uuidsOf(body));
  }

  /** The headers `webhook-id` of all requests. */
  get ids(): readonly unknown[] {
    return this.received.map(({ headers }) => headers['webhook-id']);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

/** Returns the uuids of the events of a body. */
export function uuidsOf(body: string): readonly string[] {
  const { data } = JSON.parse(body) as { data: { uuid: string } | { uuid: string }[] };
  return [data].flat().map(({ uuid }) => uuid);
}

/** A service that delivers webhooks, over a database that other services may have as well. */
export interface WebhookService extends AsyncDisposable, Omit<QueryService, 'stop'> {
  /** The lines of its log. */
  readonly log: readonly Readonly<Record<string, unknown>>[];
}

/** @param wrap returns what the state of webhooks is stored with; default: the client itself */
export async function startWebhooks(
  { config: { CLICKHOUSE_URL, CLICKHOUSE_DATABASE } }: TestDatabase,
  given: Readonly<Record<string, string>> = {},
  wrap: (client: ClickHouseClient) => ClickHouseClient = (client) => client,
): Promise<WebhookService> {
  const log: Record<string, unknown>[] = [];
  await using started = new AsyncDisposableStack();
  const env = { CLICKHOUSE_URL, CLICKHOUSE_DATABASE, ...WEBHOOKS_ENV, ...given };
  const service = await startApp(env, (config) => {
    const options = { application: 'query-api', requestTimeoutMs: 600_000, connectionsMax: 4 };
    const [probed, reader] = [createClickHouse(config, options), connectReader(config)];
    const webhooks = connectWebhooks(config);
    for (const client of [probed, webhooks]) started.defer(async () => client?.close());
    started.defer(() => reader.close());
    return {
      ...{ source: { reader }, readiness: createReadiness(probed, config), webhooks: webhooks && wrap(webhooks) },
      logger: createLogger('query-api', 'info', { write: (line) => void log.push(JSON.parse(line)) }),
    };
  });
  started.defer(() => service.stop());
  const clickHouse = started.adopt(administratorOf(service.config), (client) => client.close());
  const kept = started.move();
  return {
    ...{ app: service.app, config: service.config, get: service.get, clickHouse, log, ...insertInto(clickHouse) },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

export interface WebhookResponse {
  readonly status: number;
  readonly body: Record<string, unknown> & { readonly id: string; readonly secret: string };
}

/** Sends a request with a key that manages webhooks; the default is that of workspace `a`. */
export async function manage(
  service: Pick<QueryService, 'app'>,
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
  url: string,
  payload?: object,
  workspace = 'a',
): Promise<WebhookResponse> {
  const headers = { authorization: `Bearer webhooks-${workspace}` };
  const response = await service.app.inject({ method, url, headers, ...(payload && { payload }) });
  return {
    status: response.statusCode,
    body: (response.body === '' ? {} : response.json()) as WebhookResponse['body'],
  };
}

/** Creates a webhook, and returns its path. @param given what the webhook has, or its address alone */
export async function subscribe(
  service: Pick<QueryService, 'app'>,
  given: object | string,
  workspace?: string,
): Promise<string> {
  const payload = typeof given === 'string' ? { url: given } : given;
  const { status, body } = await manage(service, 'POST', '/webhooks', payload, workspace);
  if (status !== 201) throw new Error(`the webhook was not created: ${status} ${JSON.stringify(body)}`);
  return `/webhooks/${body.id}`;
}

/** The line that says in the log that a webhook is paused. */
export const pauseIn = ({ log }: WebhookService, path: string) =>
  log.find(({ level, webhook }) => level === 'error' && path.endsWith(String(webhook)));
