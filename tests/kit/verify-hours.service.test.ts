import { randomUUID } from 'node:crypto';
import { createLogger } from '@sluice/shared/base/log';
import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { migrate } from '@sluice/shared/clickhouse/migrate';
import { mergeParts } from '@sluice/shared/clickhouse/testing/merge-parts';
import { expect, inject, test } from 'vitest';
import { wrongHours } from './verify-hours.ts';

test('hours and days that differ from their events are found, and no others', async () => {
  await using started = new AsyncDisposableStack();
  const url = inject('clickhouseUrl');
  const database = `hours_${randomUUID().replaceAll('-', '')}`;
  const config = {
    CLICKHOUSE_URL: url,
    CLICKHOUSE_DATABASE: database,
    CLICKHOUSE_USER: 'default',
    CLICKHOUSE_PASSWORD: '',
  };
  await migrate(config, createLogger('test', 'silent'));
  const client = createClickHouse(config, { application: 'test', requestTimeoutMs: 30_000, connectionsMax: 1 });
  started.defer(async () => {
    await client.command({ query: `DROP DATABASE ${database} SYNC` });
    await client.close();
  });
  const wrong = () => wrongHours(database, url);
  expect(await wrong()).toEqual([]);

  // An event that is stored twice, in two parts, is in both until they are merged.
  const repeated = `INSERT INTO events (workspace_id, timestamp, uuid, event, received_at)
    SELECT 'a', '2026-03-01 12:30:00', toUUID('00000000-0000-7000-8000-000000000001'), 'e', '2026-03-01'`;
  await client.command({ query: repeated });
  await client.command({ query: repeated });
  expect(await wrong()).toEqual([]);

  // ClickHouse's other mode merges the projections alone, and so keeps the count of two.
  await client.command({ query: "ALTER TABLE events MODIFY SETTING deduplicate_merge_projection_mode = 'ignore'" });
  await mergeParts(client, 'events');
  expect(await wrong()).toEqual([
    expect.stringContaining('the projection of hours differs: a track e 2026-03-01 12:00:00'),
    expect.stringContaining('the projection of days differs: a track e 2026-03-01 00:00:00'),
  ]);
});
