import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger, type Logger } from '@sluice/shared/base/log';
import { type ClickHouseClient, createClickHouse } from '@sluice/shared/clickhouse/client';
import { ADMINISTRATOR, QUERY_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { type TestDatabase, takeDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { type ClickHouseConfig, loadConfig } from '@sluice/shared/config';
import { FileKeyRing } from '@sluice/shared/keys/key-ring';
import { hashKey, type KeyEntry, SCOPES, writeKeysFile } from '@sluice/shared/keys/keys-file';
import { parseJson } from '@sluice/shared/text/json';
import type { FastifyInstance } from 'fastify';
import { Registry } from 'prom-client';
import { buildApp, type QueryDependencies } from '../app.ts';
import {
  configSchema,
  connectionsOf,
  type QueryConfig,
  sqlConfigOf,
  webhooksConfigOf,
  webhooksConfigOn,
} from '../config.ts';
import type { Place } from '../manage/manage.ts';
import { EVENT_COLUMNS, EVENT_FIELDS, type FieldsLike } from '../records/events/event-columns.ts';
import { type ClickHouseReader, HttpClickHouseReader } from '../store/clickhouse-reader.ts';
import { querySettings } from '../store/query-settings.ts';
import { REQUEST_CONNECTIONS } from '../store/request-slots.ts';
import { createReadiness } from '../store/schema.ts';

type Identifier = FieldsLike<{ readonly type: 'identifier' }>;

/** The identifiers of an event. Tests take them from the table of columns, so that they cover a new one. */
export const IDENTIFIERS = EVENT_FIELDS.filter(([, { type }]) => type === 'identifier').map(
  ([field]) => field,
) as readonly Identifier[];

/** Returns an object with a value for each identifier. */
export function eachIdentifier<Value>(value: Value): Readonly<Record<Identifier, Value>> {
  return Object.fromEntries(IDENTIFIERS.map((field) => [field, value])) as Record<Identifier, Value>;
}

/**
 * An event as tests write it. A missing identifier is the empty string; `properties`, `context` and `traits` are JSON.
 */
export interface TestEvent extends Readonly<Record<Identifier, string>> {
  readonly uuid: string;
  readonly timestampMs: number;
  readonly receivedAtUs: number;
  readonly event: string;
  readonly type: string;
  readonly properties: string;
  readonly context: string;
  readonly traits: string;
}

/** Returns an event with the given fields, and defaults for the others. */
export function anEvent(given: Partial<TestEvent> = {}): TestEvent {
  return {
    ...eachIdentifier(''),
    uuid: randomUUID(),
    timestampMs: Date.UTC(2026, 2, 1),
    receivedAtUs: Date.UTC(2026, 2, 1) * 1_000,
    event: 'e',
    type: 'track',
    properties: '{}',
    context: '{}',
    traits: '{}',
    ...given,
  };
}

/** Returns the value of a register of `entity_properties`. */
export function aRegister(version: number, operation: 'set' | 'remove', value: string): Record<string, unknown> {
  return { version, change_id: '0190a0a0-0000-7000-8000-000000000001', operation, value };
}

/** Longer than the service reuses its look-up of pending deletions, in milliseconds. */
export const DELETIONS_FORGOTTEN_MS = 550;

/** Workspaces that may be read. The key of each is its name. */
export const TEST_WORKSPACES: readonly string[] = [...'abcdefgh'];

/** The app that the service runs, over a real ClickHouse with an empty database that no other service has. */
export interface QueryService {
  readonly app: FastifyInstance;
  readonly config: QueryConfig;
  /** Of the administrator: the service itself may only read. */
  readonly clickHouse: ClickHouseClient;
  /** Inserts the events of one call at once. */
  store(workspace: string, events: readonly TestEvent[]): Promise<void>;
  insert(table: string, rows: readonly Record<string, unknown>[]): Promise<void>;
  /** Sends GET with the key of a workspace; the default is `a`. */
  get(url: string, workspace?: string): Promise<TestResponse>;
  stop(): Promise<void>;
}

export interface TestResponse {
  readonly status: number;
  readonly text: string;
  readonly body: ResponseBody;
}

/** The members of a page or of a problem that tests look at. */
export interface ResponseBody {
  readonly limit: number;
  readonly offset: number;
  readonly total: number | null;
  readonly results: readonly Record<string, unknown>[];
  readonly nextCursor: string | null;
  readonly code: string;
  readonly errors: readonly { readonly path: string; readonly code: string; readonly message: string }[];
}

/** Budgets that no query of a test exceeds, however busy the machine is. Tests of budgets set smaller ones. */
export const AMPLE_BUDGETS = { QUERY_TIMEOUT_MS: '600000', COUNT_TIMEOUT_MS: '600000' } as const;

/** The keys of the service: a file that follows from its path, and what removes it. */
interface TestKeys {
  readonly path: string;
  remove(): Promise<void>;
}

async function writeTestKeys(): Promise<TestKeys> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-query-'));
  const path = join(folder, 'keys.json');
  const key = (id: string, workspace: string, scopes: KeyEntry['scopes']) => ({
    id,
    hash: hashKey(id),
    workspace,
    scopes,
  });
  await writeKeysFile(path, [
    ...TEST_WORKSPACES.map((id) => key(id, id, ['query'])),
    ...TEST_WORKSPACES.map((id) => key(`sql-${id}`, id, ['sql'])),
    ...TEST_WORKSPACES.map((id) => key(`webhooks-${id}`, id, ['webhooks'])),
    ...TEST_WORKSPACES.map((id) => key(`admin-${id}`, id, ['query', 'admin'])),
    key('ingest-only', 'a', ['ingest', 'delete']),
    key('sender-a', 'a', ['query', 'admin', 'ingest']),
    key('analyst-a', 'a', ['query', 'sql', 'admin']),
    key('all-a', 'a', [...SCOPES]),
    { ...key('limited', 'a', ['query']), rateLimit: 1 },
  ]);
  return { path, remove: () => rm(folder, { recursive: true }) };
}

/** The app of the service, and how tests send it requests. */
export interface TestApp extends Pick<QueryService, 'app' | 'config' | 'get'> {
  stop(): Promise<void>;
}

/**
 * Starts the app. Each of the workspaces `a` to `h` has a key of its name; workspace `a` also has the key `ingest-only`,
 * which may not query, `sender-a`, which manages and sends, `analyst-a`, which manages, queries and sends SQL, `all-a` with all scopes, and `limited`, with a
 * rate limit of one request a second. The keys `sql-a` to `sql-h` may send SQL,
 * `webhooks-a` to `webhooks-h` manage webhooks, `admin-a` to `admin-h` query, and manage keys, dead letters and links.
 *
 * @param sourceOf returns what it reads
 */
export async function startApp(
  env: Readonly<Record<string, string | undefined>>,
  sourceOf: (
    config: QueryConfig,
  ) => Pick<QueryDependencies, 'source' | 'readiness' | 'webhooks' | 'connectWebhooks'> & { readonly logger?: Logger },
): Promise<TestApp> {
  const { path, remove } = await writeTestKeys();
  const config = loadConfig(configSchema, { ...QUERY_ACCOUNT, API_KEYS_FILE: path, ...AMPLE_BUDGETS, ...env });
  const logger = createLogger('query-api', 'silent');
  const keys = new FileKeyRing(path, logger);
  const app = buildApp(config, { keys, logger, registry: new Registry(), ...sourceOf(config) });
  await keys.start();
  await app.ready();
  return {
    app,
    config,
    async get(url, workspace = 'a') {
      const response = await app.inject({ url, headers: { authorization: `Bearer ${workspace}` } });
      return { status: response.statusCode, body: parseJson(response.body) as ResponseBody, text: response.body };
    },
    async stop() {
      await app.close();
      await keys.stop();
      await remove();
    },
  };
}

/** Connects as the service does. */
export function connectReader(config: QueryConfig): ClickHouseReader {
  const sql = sqlConfigOf(config);
  return new HttpClickHouseReader(config, {
    connectionsMax: connectionsOf(config) + 2,
    settings: querySettings(config),
    sqlReader: sql && new HttpClickHouseReader(sql, { connectionsMax: config.REPORT_CONNECTIONS_MAX, settings: {} }),
  });
}

/** Connects for the state of webhooks; undefined where it has no account. @param place default: where that is */
export function connectWebhooks(config: QueryConfig, place?: Place): ClickHouseClient | undefined {
  const clickHouse = place ? webhooksConfigOn(config, place) : webhooksConfigOf(config);
  const options = { application: 'query-api', requestTimeoutMs: 600_000, connectionsMax: REQUEST_CONNECTIONS + 8 };
  return clickHouse && createClickHouse(clickHouse, options);
}

/**
 * Starts the service, as {@link startApp} does, over a database of its own.
 *
 * @param wrapReader returns what the service reads with; default: the reader itself
 * @param database `createDatabase` for a test that changes tables or settings of them
 */
export async function startQuery(
  url: string,
  env: Readonly<Record<string, string>> = {},
  wrapReader: (reader: ClickHouseReader) => ClickHouseReader = (reader) => reader,
  database: (url: string) => Promise<TestDatabase> = takeDatabase,
): Promise<QueryService> {
  const taken = await database(url);
  const own: { close(): Promise<void> | void }[] = [];
  const service = await startApp({ ...taken.config, ...QUERY_ACCOUNT, ...env }, (config) => {
    const options = { application: 'query-api', requestTimeoutMs: 600_000, connectionsMax: 4 };
    const [probed, reader] = [createClickHouse(config, options), connectReader(config)];
    own.push(probed, reader);
    const webhooks = connectWebhooks(config);
    if (webhooks) own.push(webhooks);
    return { source: { reader: wrapReader(reader) }, readiness: createReadiness(probed, config), webhooks };
  });
  const clickHouse = administratorOf(service.config);
  const { insert, store } = insertInto(clickHouse);
  return {
    ...service,
    clickHouse,
    insert,
    store,
    async stop() {
      await service.stop();
      await Promise.all([clickHouse, ...own].map((one) => one.close()));
      await taken.release();
    },
  };
}

/** Returns a client of the administrator for a database. */
export function administratorOf(config: ClickHouseConfig): ClickHouseClient {
  return createClickHouse(
    { ...config, ...ADMINISTRATOR },
    { application: 'query-api-test', requestTimeoutMs: 600_000, connectionsMax: 8 },
  );
}

/** Returns how tests store rows of a database. */
export function insertInto(clickHouse: ClickHouseClient): Pick<QueryService, 'insert' | 'store'> {
  async function insert(table: string, values: readonly Record<string, unknown>[]): Promise<void> {
    await clickHouse.insert({
      table,
      values: [...values],
      format: 'JSONEachRow',
      // As the writer inserts, but a test may insert several rows of one key, which the writer never does. ClickHouse would
      // merge them after it has computed their index, which then knows the value of only one of them.
      clickhouse_settings: { async_insert: 0, optimize_on_insert: 0 },
    });
  }

  return {
    insert,
    async store(workspace, events) {
      await insert(
        'events',
        events.map((event) => eventRow(workspace, event)),
      );
    },
  };
}

/** Returns the row of an event, for tests that store those of several workspaces at once. */
export function eventRow(workspace: string, event: TestEvent): Record<string, unknown> {
  return {
    workspace_id: workspace,
    timestamp: event.timestampMs,
    uuid: event.uuid,
    type: event.type,
    event: event.event,
    ...Object.fromEntries(IDENTIFIERS.map((field) => [EVENT_COLUMNS[field].column, event[field]])),
    properties: event.properties,
    context: event.context,
    traits: event.traits,
    received_at: event.receivedAtUs,
  };
}
