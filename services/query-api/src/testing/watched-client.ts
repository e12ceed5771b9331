import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';

type Query = Parameters<ClickHouseClient['query']>[0];

/** What a test does around each query of a client. */
export interface Watch {
  /** Called before the query, which waits for it, and fails if it throws. */
  before(query: Query): Promise<void>;
  /** Called with what the engine has read for it. */
  after(read: { readonly rows: number; readonly bytes: number }): void;
}

/** Returns the client with queries that are watched. */
export function watchClient(client: ClickHouseClient, watch: Watch): ClickHouseClient {
  const query = async (given: Query) => {
    await watch.before(given);
    const clickhouse_settings = { ...given.clickhouse_settings, wait_end_of_query: 1 as const };
    const result = await client.query({ ...given, clickhouse_settings });
    const summary = JSON.parse(String(result.response_headers['x-clickhouse-summary']));
    watch.after({ rows: Number(summary.read_rows), bytes: Number(summary.read_bytes) });
    return result;
  };
  return new Proxy(client, {
    get(target, name) {
      const member: unknown = name === 'query' ? query : Reflect.get(target, name);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}
