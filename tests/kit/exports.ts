import { join } from 'node:path';
import { findFreePorts } from '@sluice/local-stack/ports';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { MIGRATE_ACCOUNT, QUERY_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { hashKey, writeKeysFile } from '@sluice/shared/keys/keys-file';
import { readClickHouse } from './clickhouse.ts';
import { ownClickHouse } from './engines.ts';
import { type Service, startService } from './service.ts';

const DATABASE = 'test_exports';
export const EXPORT = '/events/export?startDate=2026-01-01';
export const EXPORT_KEY = 'key-of-a';

/** A query-api with a ClickHouse of its own that has events of some 1,150 bytes each. */
export interface Exports extends AsyncDisposable {
  readonly api: Service;
  readonly clickhouse: Awaited<ReturnType<typeof ownClickHouse>>;
  readonly folder: string;
}

export async function startExports(events: number): Promise<Exports> {
  await using started = new AsyncDisposableStack();
  const folder = started.use(await makeTempDir()).path;
  const clickhouse = started.use(await ownClickHouse());
  const api = started.use(await startQueryApi(clickhouse.url, folder));
  await fill(clickhouse.url, events);
  const kept = started.move();
  return { api, clickhouse, folder, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

async function startQueryApi(clickhouseUrl: string, folder: string): Promise<Service & AsyncDisposable> {
  const [port = 0] = await findFreePorts(1);
  const keysFile = join(folder, 'keys.json');
  await writeKeysFile(keysFile, [{ id: 'a', hash: hashKey(EXPORT_KEY), workspace: 'a', scopes: ['query'] }]);
  const service = startService('query-api', port, {
    CLICKHOUSE_URL: clickhouseUrl,
    CLICKHOUSE_DATABASE: DATABASE,
    ...QUERY_ACCOUNT,
    // There is no writer that creates the tables.
    ...MIGRATE_ACCOUNT,
    API_KEYS_FILE: keysFile,
    QUERY_ANONYMOUS_WORKSPACE: 'a',
  });
  await service.ready();
  return Object.assign(service, { [Symbol.asyncDispose]: async () => void (await service.kill9()) });
}

async function fill(url: string, events: number): Promise<void> {
  await readClickHouse(
    url,
    `INSERT INTO events (workspace_id, timestamp, uuid, event, properties, received_at)
      SELECT 'a', toDateTime64('2026-03-01', 3, 'UTC') + toIntervalSecond(intDiv(number, 7)),
        reinterpretAsUUID(toUInt128(number)), 'e', concat('{"text":"', hex(randomString(450, number)), '"}'), now64(6)
      FROM numbers(${events})`,
    { database: DATABASE },
  );
}
