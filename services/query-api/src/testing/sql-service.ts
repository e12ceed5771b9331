import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startClickHouse } from '@sluice/local-stack/clickhouse';
import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { QUERY_ACCOUNT, TEST_ACCOUNTS } from '@sluice/shared/clickhouse/testing/test-accounts';
import { createDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { createReadiness } from '../store/schema.ts';
import {
  administratorOf,
  connectReader,
  connectWebhooks,
  insertInto,
  type QueryService,
  startApp,
} from './query-service.ts';

/** The only database of the engine: its row policies name it. */
const DATABASE = 'test_sql';

export const SQL_ACCOUNT = {
  CLICKHOUSE_SQL_USER: 'sluice_sql',
  CLICKHOUSE_SQL_PASSWORD: 'sql of tests',
} as const;

export interface SqlResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly bytes: Buffer;
  readonly text: string;
}

/** The app of the service over a ClickHouse of its own with the accounts and views for SQL. */
export interface SqlService extends QueryService {
  readonly clickHouseUrl: string;
  /** Sends a body to `POST /queries` with the key of a workspace; the default is `a`. */
  post(body: unknown, workspace?: string): Promise<SqlResponse>;
  /** Returns the rows of a statement, or the problem. */
  rows(sql: string, workspace?: string): Promise<unknown>;
}

/** Starts the service with the account for SQL. */
export async function startSql(env: Readonly<Record<string, string>> = {}): Promise<SqlService> {
  await using started = new AsyncDisposableStack();
  const dataDir = await mkdtemp(join(tmpdir(), 'sluice-sql-'));
  started.defer(() => rm(dataDir, { recursive: true, force: true }));
  const sql = { database: DATABASE, password: SQL_ACCOUNT.CLICKHOUSE_SQL_PASSWORD };
  const engine = await startClickHouse({ dataDir, accounts: TEST_ACCOUNTS, sql });
  started.defer(() => engine.kill9());
  const database = await createDatabase(engine.url, DATABASE);
  const service = await startApp({ ...database.config, ...QUERY_ACCOUNT, ...SQL_ACCOUNT, ...env }, (config) => {
    const probed = createClickHouse(config, { application: 'query-api', requestTimeoutMs: 600_000, connectionsMax: 4 });
    const reader = connectReader(config);
    const webhooks = connectWebhooks(config);
    started.defer(async () => {
      reader.close();
      await probed.close();
      await webhooks?.close();
    });
    return { source: { reader }, readiness: createReadiness(probed, config), webhooks };
  });
  started.defer(() => service.stop());
  const clickHouse = administratorOf(service.config);
  started.defer(() => clickHouse.close());
  const post: SqlService['post'] = async (body, workspace = 'a') => {
    const { statusCode, headers, rawPayload } = await service.app.inject({
      method: 'POST',
      url: '/queries',
      headers: { authorization: `Bearer sql-${workspace}`, 'content-type': 'application/json' },
      payload: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
    });
    return { status: statusCode, headers, bytes: rawPayload, text: rawPayload.toString() };
  };
  const kept = started.move();
  return {
    ...service,
    ...insertInto(clickHouse),
    ...{ clickHouse, clickHouseUrl: engine.url, post },
    async rows(statement, workspace) {
      const { status, text } = await post({ sql: statement }, workspace);
      return status === 200 ? JSON.parse(text).data : JSON.parse(text);
    },
    stop: () => kept.disposeAsync(),
  };
}
