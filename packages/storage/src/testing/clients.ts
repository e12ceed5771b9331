import { type ClickHouseClient, createClickHouse } from '@sluice/shared/clickhouse/client';
import { ADMINISTRATOR, WRITER_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { type TestDatabase, takeDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import type { ClickHouseConfig } from '@sluice/shared/config';

type Account = Pick<ClickHouseConfig, 'CLICKHOUSE_USER' | 'CLICKHOUSE_PASSWORD'>;

/** An empty database with the newest schema, and clients of it. */
export interface TestClients {
  readonly database: string;
  /** Logs in as the administrator. */
  readonly client: ClickHouseClient;
  /** Logs in with the account of the writer. */
  readonly writerClient: ClickHouseClient;
  /** Creates another client with the account of the writer. @param url of ClickHouse, or of a proxy */
  connect(url: string): ClickHouseClient;
  close(): Promise<void>;
  read<Row>(query: string): Promise<Row[]>;
}

/**
 * Creates clients of an empty database with the newest schema, which nobody else has.
 *
 * @param database `createDatabase` for a test that changes tables, or looks at what ClickHouse keeps of them
 */
export async function createTestClients(
  url: string,
  database: (url: string) => Promise<TestDatabase> = takeDatabase,
): Promise<TestClients> {
  const { config, release } = await database(url);
  const clients: ClickHouseClient[] = [];

  function connect(clientUrl: string, account: Account = WRITER_ACCOUNT): ClickHouseClient {
    const connecting = { ...config, ...account, CLICKHOUSE_URL: clientUrl };
    const options = { application: 'test', requestTimeoutMs: 240_000, connectionsMax: 4 };
    const created = createClickHouse(connecting, options);
    clients.push(created);
    return created;
  }

  const client = connect(url, ADMINISTRATOR);
  return {
    database: config.CLICKHOUSE_DATABASE,
    client,
    writerClient: connect(url),
    connect: (clientUrl) => connect(clientUrl),
    async close() {
      await Promise.all(clients.map((created) => created.close()));
      await release();
    },
    async read<Row>(query: string) {
      return await (await client.query({ query, format: 'JSONEachRow' })).json<Row>();
    },
  };
}
