import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { findFreePorts } from '@sluice/local-stack/ports';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { MIGRATE_ACCOUNT, QUERY_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { hashKey, writeKeysFile } from '@sluice/shared/keys/keys-file';
import { until } from '@sluice/shared/testing/until';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readClickHouse } from '../kit/clickhouse.ts';
import { ownClickHouse } from '../kit/engines.ts';
import { runExporter } from '../kit/importer.ts';
import { type Service, startService } from '../kit/service.ts';

/** Some 115 MB. */
const EVENTS = 100_000;

/** What query-api may need for an export besides what it needs anyway, in bytes: less than two thirds of what passes through it. */
const EXPORT_MEMORY_BYTES_MAX = 70 * 1_024 * 1_024;

const DATABASE = 'test_exports';
const EXPORT = '/events/export?startDate=2026-01-01';
const KEY = 'key-of-a';

async function startQueryApi(clickhouseUrl: string, folder: string): Promise<Service & AsyncDisposable> {
  const [port = 0] = await findFreePorts(1);
  const keysFile = join(folder, 'keys.json');
  await writeKeysFile(keysFile, [{ id: 'a', hash: hashKey(KEY), workspace: 'a', scopes: ['query'] }]);
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

async function fill(url: string): Promise<void> {
  await readClickHouse(
    url,
    `INSERT INTO events (workspace_id, timestamp, uuid, event, properties, received_at)
      SELECT 'a', toDateTime64('2026-03-01', 3, 'UTC') + toIntervalSecond(intDiv(number, 7)),
        reinterpretAsUUID(toUInt128(number)), 'e', concat('{"text":"', hex(randomString(450, number)), '"}'), now64(6)
      FROM numbers(${EVENTS})`,
    { database: DATABASE },
  );
}

async function residentBytes({ pid }: Service): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return 1_024 * Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]);
}

async function sizeOf(file: string): Promise<number> {
  return await stat(file).then(
    ({ size }) => size,
    () => 0,
  );
}

/** Expects each event once, in order, and a last line with their number. */
async function expectComplete(file: string): Promise<void> {
  const uuids = new Set<string>();
  let last = '';
  let lastPosition = '';
  for await (const line of createInterface({ input: createReadStream(file) })) {
    const [, uuid = '', timestamp = ''] = /^\{"uuid":"([^"]+)".*"timestamp":"([^"]+)","receivedAt/.exec(line) ?? [];
    if (uuid !== '') {
      uuids.add(uuid);
      const position = `${timestamp},${uuid}`;
      if (position <= lastPosition) throw new Error(`${position} is behind ${lastPosition}`);
      lastPosition = position;
    }
    last = line;
  }
  expect(last).toBe(`{"complete":true,"events":${EVENTS}}`);
  expect(uuids.size).toBe(EVENTS);
}

const started = new AsyncDisposableStack();
let folder: string;
let clickhouse: Awaited<ReturnType<typeof ownClickHouse>>;
let api: Service;

beforeAll(async () => {
  folder = started.use(await makeTempDir()).path;
  clickhouse = started.use(await ownClickHouse());
  api = started.use(await startQueryApi(clickhouse.url, folder));
  await fill(clickhouse.url);
});
afterAll(() => started.disposeAsync());

test('an export needs little memory, whether its client is fast or reads nothing', async () => {
  await (await fetch(`${api.url}${EXPORT}&endDate=2026-03-01T00:10:00Z`)).text();
  const before = await residentBytes(api);
  let highest = 0;
  let bytes = 0;
  const fast = await fetch(api.url + EXPORT);
  for await (const chunk of fast.body as ReadableStream<Uint8Array>) {
    if (Math.floor(bytes / 5_000_000) !== Math.floor((bytes + chunk.length) / 5_000_000)) {
      highest = Math.max(highest, await residentBytes(api));
    }
    bytes += chunk.length;
  }
  expect(bytes).toBeGreaterThan(EVENTS * 1_000);
  expect(highest - before).toBeLessThan(EXPORT_MEMORY_BYTES_MAX);

  const controller = new AbortController();
  const slow = await fetch(api.url + EXPORT, { signal: controller.signal });
  await (slow.body as ReadableStream<Uint8Array>).getReader().read();
  // Longer than the buffers of the system take to fill.
  await delay(5_000);
  expect((await residentBytes(api)) - before).toBeLessThan(EXPORT_MEMORY_BYTES_MAX);
  controller.abort();
});

test('ClickHouse is killed in the middle of exports: connections break off, and npm run export completes its file', async () => {
  const response = await fetch(api.url + EXPORT);
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  await reader.read();
  const file = join(folder, 'events.ndjson');
  await clickhouse.kill9();
  let tail = '';
  await expect(async () => {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      tail = (tail + Buffer.from(next.value).toString('latin1')).slice(-200);
    }
  }).rejects.toThrow('terminated');
  expect(tail).not.toContain('"complete"');
  expect(tail).not.toContain('Exception');
  await clickhouse.restart();
  await api.ready();

  const args = ['--url', api.url, '--out', file, '--give-up-after', '300', 'startDate=2026-01-01'];
  const exporting = runExporter(args, KEY);
  await Promise.race([
    until('the export to be under way', async () => (await sizeOf(`${file}.part`)) > 20_000_000),
    exporting.then(({ output }) => Promise.reject(new Error(`The export ended too early: ${output}`))),
  ]);
  await clickhouse.kill9();
  const cutOff = await sizeOf(`${file}.part`);
  await clickhouse.restart();
  const { code, output } = await exporting;
  expect(code, output).toBe(0);
  expect(await sizeOf(file)).toBeGreaterThan(cutOff);
  await expectComplete(file);
});
