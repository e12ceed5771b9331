import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { createLogger } from '@sluice/shared/base/log';
import { loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { messageHeaders } from '@sluice/shared/rows';
import { until } from '@sluice/shared/testing/until';
import { configSchema } from '@sluice/writer/config';
import { expect, inject, test } from 'vitest';
import { RESTORE_ACCOUNT, sluice } from '../kit/backups.ts';
import { readClickHouse } from '../kit/clickhouse.ts';
import { ownClickHouse } from '../kit/engines.ts';
import { startLoad } from '../kit/load.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';
import { faultsOf, NO_FAULTS, verifyDelivery } from '../kit/verify-delivery.ts';

/** Sends a row that ClickHouse cannot store, which ingest-api would not. */
async function sendBadRow(pipeline: Pipeline, text: string): Promise<void> {
  const config = loadConfig(configSchema, pipeline.environment);
  const producer = createKafka(config, 'test', createLogger('test', 'silent')).producer();
  await producer.connect();
  const message = { value: `${text}\n`, headers: messageHeaders('events'), partition: 0 };
  await producer.send({ topic: `${config.KAFKA_TOPIC_PREFIX}events`, acks: -1, messages: [message] });
  await producer.disconnect();
}

/** What users see of the database: of each table the rows that count, without what depends on when they were stored. */
const CONTENTS = {
  events: `SELECT workspace_id, timestamp, uuid, event, user_id, group_id, properties, received_at FROM events
    WHERE (workspace_id, user_id) NOT IN (SELECT workspace_id, user_id FROM pending_deletions)`,
  properties: `SELECT workspace_id, kind, id, property, max(register) FROM entity_properties
    WHERE (workspace_id, id) NOT IN (SELECT workspace_id, user_id FROM pending_deletions) GROUP BY ALL`,
  deletions: 'SELECT workspace_id, user_id, max(version) FROM user_deletions GROUP BY ALL',
  sightings: `SELECT DISTINCT workspace_id, user_id, version, group_id FROM user_sightings
    WHERE (workspace_id, user_id) NOT IN (SELECT workspace_id, user_id FROM pending_deletions)`,
  links: 'SELECT DISTINCT workspace_id, anonymous_id, user_id, version, said FROM identity_links',
  deadLetters: 'SELECT id, kind, row FROM dead_letters FINAL',
  groups: 'SELECT DISTINCT group_id FROM writer_groups',
};

async function countOf({ database }: Pipeline, clickhouseUrl: string, table: string): Promise<number> {
  return Number(await readClickHouse(clickhouseUrl, `SELECT count() FROM ${table} FORMAT TSV`, { database }));
}

async function contentsOf({ database }: Pipeline, clickhouseUrl: string): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {};
  for (const [name, sql] of Object.entries(CONTENTS)) {
    found[name] = (await readClickHouse(clickhouseUrl, `${sql} ORDER BY ALL FORMAT TSV`, { database })).split('\n');
  }
  return found;
}

/** It counts as another database: its blocks have other numbers. */
async function databaseIdOf({ database }: Pipeline, clickhouseUrl: string): Promise<string> {
  const sql = 'SELECT id FROM database_identity ORDER BY recorded_at DESC LIMIT 1 FORMAT TSV';
  return await readClickHouse(clickhouseUrl, sql, { database });
}

/** Waits until every deleted user is erased. */
async function erased(pipeline: Pipeline, clickhouseUrl: string): Promise<void> {
  await until(
    'every deleted user to be erased',
    async () => (await countOf(pipeline, clickhouseUrl, 'pending_deletions')) === 0,
  );
}

test('the drill: a backup under load, more load and deletions, ClickHouse destroyed, restored: everything is there once', async () => {
  await using backups = await makeTempDir();
  await using data = await makeTempDir();
  const clickhouse = await ownClickHouse({ dataDir: join(data.path, 'clickhouse'), backupDir: backups.path });
  await using _engine = clickhouse;
  const kafkaBrokers = inject('kafkaBrokers');
  await using running = await startPipeline({ kafkaBrokers, clickhouseUrl: clickhouse.url, name: 'drill' });
  const urls = () => [running.services['ingest-api'].url];
  await using load = startLoad({ pipeline: running, urls, concurrency: 6 });
  await until('events before the backup', async () => load.acceptedSoFar() > 300);
  await sendBadRow(running, 'before the backup');
  await until('a dead letter', async () => (await countOf(running, clickhouse.url, 'dead_letters')) === 1);

  const to = join(backups.path, 'monday');
  const backup = await sluice(running, ['backup', '--to', to]);
  expect(backup).toEqual({ code: 0, output: expect.stringMatching(/The backup is complete: .* MB in \d+ files/) });
  const atBackup = load.acceptedSoFar();
  await until('events after the backup', async () => load.acceptedSoFar() > atBackup + 300);
  await sendBadRow(running, 'after the backup');
  const tally = await load.stop();
  await running.drained();
  await erased(running, clickhouse.url);
  const before = await contentsOf(running, clickhouse.url);
  const databaseId = await databaseIdOf(running, clickhouse.url);

  await running.services.writer.stop();
  await clickhouse.kill9();
  await rm(join(data.path, 'clickhouse'), { recursive: true });
  await clickhouse.restart();
  const restore = await sluice(running, ['restore', '--from', to, '--yes'], RESTORE_ACCOUNT);
  expect(restore).toEqual({ code: 0, output: expect.stringMatching(/Kafka has everything since.* is restored: /s) });
  await running.restart('writer');

  expect(faultsOf(await verifyDelivery(running, clickhouse.url, tally))).toEqual({ ...NO_FAULTS, deadLetters: 2 });
  await erased(running, clickhouse.url);
  expect(await contentsOf(running, clickhouse.url)).toEqual(before);
  expect(await databaseIdOf(running, clickhouse.url)).not.toBe(databaseId);
});
