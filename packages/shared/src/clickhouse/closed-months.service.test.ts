import { readFile } from 'node:fs/promises';
import { expect, inject, onTestFinished, test } from 'vitest';
import { createLogger } from '../base/log.ts';
import { eventually } from '../testing/eventually.ts';
import { createClickHouse } from './client.ts';
import { migrate, readMigrations } from './migrate.ts';
import { mergeParts } from './testing/merge-parts.ts';
import { ADMINISTRATOR } from './testing/test-accounts.ts';
import { createDatabase } from './testing/test-database.ts';

const LATEST_BEFORE = 49;

/**
 * How many days ago events happened and were received: in months of their own. The first day of that month is less than 90
 * days ago, so an event of it that is received today is in the partition of the month.
 */
const LONG_AGO = 40;
const TODAY = 0;

async function useDatabase(create: (url: string) => ReturnType<typeof createDatabase> = createDatabase) {
  const { config, release } = await create(inject('clickhouseUrl'));
  const client = createClickHouse(config, { application: 'test', requestTimeoutMs: 60_000, connectionsMax: 2 });
  onTestFinished(async () => {
    await client.close();
    await release();
  });
  const run = (query: string) => client.command({ query });
  /** Stores a part of events that happened, and were received, so many days ago. */
  const store = (days: number, table = 'events') =>
    run(`INSERT INTO ${table} (workspace_id, timestamp, uuid, event, user_id, properties, received_at)
      SELECT 'w', toStartOfMonth(now() - INTERVAL ${days} DAY) + toIntervalSecond(number), generateUUIDv4(number), 'e', concat('u', toString(number % 50)),
        concat('{"plan":"', ['free', 'team', 'business'][number % 3 + 1], '","path":"/teams/', toString(number % 97),
          '/members","url":"https://app.example.com/teams/', toString(number % 89), '?tab=activity&ref=email","session":"', lower(hex(MD5(toString(intDiv(number, 20))))), '","amount":', toString(number), '}'),
        now() - INTERVAL ${days} DAY
      FROM numbers(2000)`);
  /** The codecs of the parts of each month, oldest month first. */
  const codecs = async (table = 'events') => {
    const result = await client.query({
      query: `SELECT groupArray(default_compression_codec) FROM system.parts
        WHERE database = currentDatabase() AND table = {table:String} AND active GROUP BY partition_id ORDER BY partition_id`,
      query_params: { table },
      format: 'JSONCompactEachRow',
    });
    return (await result.json<[string[]]>()).map(([ofMonth]) => ofMonth);
  };
  const bytesOf = async (column: string, table = 'events') => {
    const result = await client.query({
      query: `SELECT sum(column_data_compressed_bytes) FROM system.parts_columns
        WHERE database = currentDatabase() AND table = {table:String} AND active AND column = {column:String}`,
      query_params: { column, table },
      format: 'JSONCompactEachRow',
    });
    return Number((await result.json<[number]>())[0]?.[0]);
  };
  return { client, config, run, store, codecs, bytesOf };
}

test('the merge that closes a month recompresses it; a deletion keeps it so, and months with new events stay as they are', async () => {
  const { client, run, store, codecs } = await useDatabase();
  await run('SYSTEM STOP MERGES events');
  for (const days of [LONG_AGO, LONG_AGO, TODAY, TODAY]) await store(days);
  expect(await codecs()).toEqual([
    ['LZ4', 'LZ4'],
    ['LZ4', 'LZ4'],
  ]);
  await run('SYSTEM START MERGES events');
  await mergeParts(client, 'events');
  expect(await codecs()).toEqual([['ZSTD(1)'], ['LZ4']]);
  await run("ALTER TABLE events DELETE WHERE user_id = 'u7' SETTINGS mutations_sync = 1");
  expect(await codecs()).toEqual([['ZSTD(1)'], ['LZ4']]);
});

test('a month that gets an event again is recompressed with it, by the next merge of the whole month', async () => {
  const { client, run, store, codecs } = await useDatabase();
  await store(LONG_AGO);
  await mergeParts(client, 'events');
  await run(`INSERT INTO events (workspace_id, timestamp, uuid, event, received_at)
    SELECT 'w', toStartOfMonth(now() - INTERVAL ${LONG_AGO} DAY), generateUUIDv4(), 'late', now()`);
  await mergeParts(client, 'events');
  expect(await codecs()).toEqual([['LZ4']]);
});

test('no part is rewritten for its age alone', async () => {
  const { run, store, codecs } = await useDatabase();
  await run('CREATE TABLE impatient AS events');
  await run('ALTER TABLE impatient MODIFY SETTING max_number_of_merges_with_ttl_in_pool = 2');
  await store(LONG_AGO);
  await store(LONG_AGO, 'impatient');
  await eventually(() => codecs('impatient'), { interval: 200 }).toEqual([['ZSTD(1)']]);
  expect(await codecs()).toEqual([['LZ4']]);
});

test('documents have larger blocks, so that they take fewer bytes; other columns have the blocks of before', async () => {
  const { client, run, store, bytesOf } = await useDatabase();
  await run('CREATE TABLE small_blocks AS events');
  const reset = 'MODIFY COLUMN properties RESET SETTING min_compress_block_size, max_compress_block_size';
  await run(`ALTER TABLE small_blocks ${reset}`);
  for (const table of ['events', 'small_blocks']) {
    // Columns have files of their own, as in the parts that hold most of the events.
    await run(`ALTER TABLE ${table} MODIFY SETTING min_bytes_for_wide_part = 0`);
    await store(TODAY, table);
    await mergeParts(client, table);
  }
  expect(await bytesOf('properties')).toBeLessThan(0.85 * (await bytesOf('properties', 'small_blocks')));
  expect(await bytesOf('user_id')).toBe(await bytesOf('user_id', 'small_blocks'));
});

test('events of before the upgrade are recompressed by the next merge, too', async () => {
  const name = 'test_bytes_before';
  const config = { CLICKHOUSE_URL: inject('clickhouseUrl'), CLICKHOUSE_DATABASE: name, ...ADMINISTRATOR };
  const all = await readMigrations();
  const logger = createLogger('test', 'silent');
  await migrate(
    config,
    logger,
    all.filter(({ number }) => number <= LATEST_BEFORE),
  );
  const { client, run, store, codecs } = await useDatabase((url) => createDatabase(url, name));
  // A later migration rewrites the columns of small parts, which are one file, and nothing of large ones.
  await run('ALTER TABLE events MODIFY SETTING min_bytes_for_wide_part = 0, min_rows_for_wide_part = 0');
  await store(LONG_AGO);
  await store(TODAY);
  expect(await migrate(config, logger, all)).toEqual(all.slice(LATEST_BEFORE).map(({ number }) => number));
  const unfinished = 'SELECT count() FROM system.mutations WHERE database = currentDatabase() AND NOT is_done';
  const mutations = async () =>
    (await (await client.query({ query: unfinished, format: 'JSONCompactEachRow' })).json<[number]>())[0]?.[0];
  await eventually(mutations, { interval: 100 }).toBe(0);
  expect(await codecs()).toEqual([['LZ4'], ['LZ4']]);
  // The guide lists the months that are left, by their age as parts. These are new.
  const guide = await readFile(new URL('../../../../docs/operate/upgrade.md', import.meta.url), 'utf8');
  const [, listing = ''] = /```sql\n(SELECT partition_id[\s\S]+?)```/.exec(guide) ?? [];
  const query = listing.replace('now() - INTERVAL 35 DAY', 'now() + INTERVAL 1 DAY');
  const listed = async () => (await (await client.query({ query, format: 'JSONCompactEachRow' })).json()).length;
  expect(await listed()).toBe(2);
  await run('OPTIMIZE TABLE events FINAL');
  await eventually(() => codecs(), { interval: 200 }).toEqual([['ZSTD(1)'], ['LZ4']]);
  expect(await listed()).toBe(1);
});
