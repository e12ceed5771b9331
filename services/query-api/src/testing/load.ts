import { type ClientRequest, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { QueryService } from './query-service.ts';

/** Properties of every event of {@link storeMany}. Each name can mean 64 places. */
const DOTTED = ['k', 'l', 'm'].map((first) => `${first}.b.c.d.e.f.g`);

/**
 * Filters that every event of {@link storeMany} passes after ClickHouse has looked at all of those places: some 30 µs
 * each.
 */
export const SLOW_FILTERS = DOTTED.map((name) => `properties.${name}=1`).join('&');

/** Inserts events at once, one a second from 2026-03-01 on, of a thousand users. `properties.n` numbers them. */
export async function storeMany({ clickHouse }: QueryService, workspace: string, rows: number): Promise<void> {
  await clickHouse.command({
    query: `INSERT INTO events (workspace_id, timestamp, uuid, event, user_id, properties, received_at)
      SELECT {workspace:String}, toDateTime64('2026-03-01', 3, 'UTC') + toIntervalMillisecond(number * 1000), generateUUIDv4(number), 'e',
        toString(number % 1000), concat('{"n":', toString(number), {dotted:String}, '}'), now64(6)
      FROM numbers({rows:UInt64}) SETTINGS max_insert_block_size = 1000000`,
    query_params: { workspace, rows, dotted: DOTTED.map((name) => `,"${name}":1`).join('') },
  });
}

/** Returns how many queries of the service run in ClickHouse, without polls for pending deletions. */
export async function queriesRunning({ clickHouse }: QueryService): Promise<number> {
  const result = await clickHouse.query({
    query: `SELECT count() FROM system.processes
      WHERE current_database = currentDatabase() AND query_id != queryID() AND query_id NOT LIKE '%/pending_deletions/%'`,
    format: 'JSONCompactEachRow',
  });
  return (await result.json<[number]>())[0]?.[0] ?? Number.NaN;
}

/** Returns the value of a metric of the service, with its labels; 0 when it has none yet. */
export async function metric({ app }: QueryService, name: string): Promise<number> {
  const { body } = await app.inject({ url: '/metrics' });
  const line = body.split('\n').find((candidate) => candidate.startsWith(`${name} `));
  return Number(line?.split(' ').at(-1) ?? 0);
}

/** Sends a request to a service that listens, on a connection of its own. Errors of the connection are ignored. */
export function openRequest(
  { app }: QueryService,
  path: string,
  workspace = 'a',
  encoding = 'identity',
): ClientRequest {
  const { port } = app.server.address() as AddressInfo;
  const headers = { authorization: `Bearer ${workspace}`, 'accept-encoding': encoding };
  const request = get(`http://127.0.0.1:${port}${path}`, { agent: false, headers });
  return request.on('error', () => undefined);
}
