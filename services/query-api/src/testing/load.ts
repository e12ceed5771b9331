import { once } from 'node:events';
import { type ClientRequest, get, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'vitest';
import type { ClickHouseReader, ReadRequest } from '../store/clickhouse-reader.ts';
import type { QueryService } from './query-service.ts';

/** A filter that every event of {@link storeMany} matches; {@link slowly} and {@link outOfTime} know queries by it. */
export const SLOW_FILTER = 'userId[ne]=slow';

export function isSlow({ params }: ReadRequest): boolean {
  return Object.values(params).includes('slow');
}

/** A slow query reads so many for half an hour with one thread. */
export const SLOW_EVENTS = 100_000;

/**
 * ClickHouse sleeps 20 ms for each row of `events` that it reads, and looks then whether to go on. It sleeps also for rows that the
 * filters of the query leave out: they must not be looked at before, nor known from the last query.
 */
const SLEEPING = {
  additional_table_filters: "{'events': 'sleepEachRow(0.02) = 0'}",
  max_block_size: '1',
  optimize_move_to_prewhere: '0',
  use_query_condition_cache: '0',
};

/** Lets ClickHouse run slow queries until they are ended, without a load on it. */
export function slowly(reader: ClickHouseReader, matches = isSlow): ClickHouseReader {
  return withSettings(reader, matches, SLEEPING);
}

/** Lets ClickHouse refuse slow queries because their time is up, whatever time the service gives them. */
export function outOfTime(reader: ClickHouseReader, matches = isSlow): ClickHouseReader {
  return withSettings(reader, matches, { ...SLEEPING, max_execution_time: '0.001' });
}

function withSettings(
  reader: ClickHouseReader,
  matches: (request: ReadRequest) => boolean,
  settings: ReadRequest['settings'],
): ClickHouseReader {
  const changed = (request: ReadRequest) =>
    matches(request) ? { ...request, settings: { ...request.settings, ...settings } } : request;
  return {
    close: () => reader.close(),
    read: (request) => reader.read(changed(request)),
    readBytes: (request) => reader.readBytes(changed(request)),
  };
}

/** Inserts events at once, one a second from 2026-03-01 on, of a thousand users. `properties.n` numbers them. */
export async function storeMany({ clickHouse }: QueryService, workspace: string, rows: number): Promise<void> {
  await clickHouse.command({
    query: `INSERT INTO events (workspace_id, timestamp, uuid, event, user_id, properties, received_at)
      SELECT {workspace:String}, toDateTime64('2026-03-01', 3, 'UTC') + toIntervalMillisecond(number * 1000), generateUUIDv4(number), 'e',
        toString(number % 1000), concat('{"n":', toString(number), '}'), now64(6)
      FROM numbers({rows:UInt64}) SETTINGS max_insert_block_size = 1000000`,
    query_params: { workspace, rows },
  });
}

/** Returns how many queries of the service run in ClickHouse, without its polls. */
export async function queriesRunning({ clickHouse }: QueryService): Promise<number> {
  const result = await clickHouse.query({
    query: `SELECT count() FROM system.processes
      WHERE current_database = currentDatabase() AND query_id != queryID() AND NOT match(query_id, '/(pending_deletions|event_retention)/')`,
    format: 'JSONCompactEachRow',
  });
  return (await result.json<[number]>())[0]?.[0] ?? Number.NaN;
}

/** Returns the value of a metric of the service, with its labels; 0 when it has none yet. */
export async function metric({ app }: Pick<QueryService, 'app'>, name: string): Promise<number> {
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

/** Waits for the beginning of a response. That it breaks off later is no error of its test. */
export async function responseTo(request: ClientRequest): Promise<IncomingMessage> {
  const [response] = await once(request, 'response');
  response.on('error', () => undefined);
  return response;
}

/** Reads the beginning of a response, and no more of it. */
export async function readBeginning(request: ClientRequest): Promise<IncomingMessage> {
  const response = await responseTo(request);
  await once(response, 'readable');
  expect(response.read(1_024)).toHaveLength(1_024);
  return response;
}
