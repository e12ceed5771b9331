import { setTimeout as delay } from 'node:timers/promises';
import type { LocalClickHouse } from '@sluice/local-stack/clickhouse';
import type { LocalKafka } from '@sluice/local-stack/kafka';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { TooLate } from '@sluice/shared/testing/until';
import { expect, test } from 'vitest';
import { readClickHouse } from '../kit/clickhouse.ts';
import { readExpectedCommits, writeCommitsOf } from '../kit/commits.ts';
import { ownClickHouse, ownKafka } from '../kit/engines.ts';
import { runImporter } from '../kit/importer.ts';
import { startPipeline } from '../kit/pipeline.ts';
import type { EntityRecord } from '../kit/records.ts';

/** The organizations whose commits are imported: 45,000 events. */
const ORGANIZATIONS = [
  'graphile/crystal',
  'vectordotdev/vector',
  'umami-software/umami',
  'fastify/fastify',
  'tulios/kafkajs',
];

/** Events per second that the key may send, so that the import goes on while processes are killed, on any machine. */
const RATE = 1_000;

async function killEngine(engine: LocalKafka | LocalClickHouse): Promise<void> {
  await engine.kill9();
  await delay(1_000);
  await engine.restart();
}

test('every process is killed during an import, and everything that was accepted is stored once', async () => {
  await using folder = await makeTempDir();
  const { file } = await writeCommitsOf(ORGANIZATIONS, folder.path);
  const expected = await readExpectedCommits();
  const events = ORGANIZATIONS.reduce((sum, id) => sum + (expected.perOrg[id] ?? 0), 0);
  await using engines = new AsyncDisposableStack();
  const [kafka, clickhouse] = await Promise.all([
    ownKafka().then((engine) => engines.use(engine)),
    ownClickHouse().then((engine) => engines.use(engine)),
  ]);
  await using pipeline = await startPipeline({
    kafkaBrokers: kafka.brokers,
    clickhouseUrl: clickhouse.url,
    name: 'kill',
    env: { RATE_LIMIT_DEFAULT: String(RATE) },
  });

  let imported = false;
  const importing = runImporter(['--url', pipeline.services['ingest-api'].url, file], pipeline.key).finally(() => {
    imported = true;
  });
  const kills: (() => Promise<void>)[] = [
    () => pipeline.killAndRestart('writer'),
    () => killEngine(clickhouse),
    () => pipeline.killAndRestart('ingest-api'),
    () => pipeline.killAndRestart('query-api'),
    () => killEngine(kafka),
    () => pipeline.killAndRestart('writer'),
  ];
  for (const kill of kills) {
    await delay(700);
    if (imported) throw new TooLate('the import was over before every process had been killed');
    await kill();
  }
  const { code, output } = await importing;
  expect(code, output).toBe(0);

  await pipeline.settled(events);
  await pipeline.drained();
  const sql = `SELECT count(), uniqExact(workspace_id, timestamp, uuid) FROM ${pipeline.database}.events FORMAT TSV`;
  expect(await readClickHouse(clickhouse.url, sql)).toBe(`${events}\t${events}`);
  for (const id of ORGANIZATIONS) {
    const { body } = await pipeline.get<EntityRecord>(`/organizations/${encodeURIComponent(id)}`);
    expect(body.properties).toEqual(expected.organizations[id]);
  }
});
