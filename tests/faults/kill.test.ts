import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type LocalClickHouse, startClickHouse } from '@sluice/local-stack/clickhouse';
import { type LocalKafka, startKafka } from '@sluice/local-stack/kafka';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readClickHouse } from '../support/clickhouse.ts';
import { runImporter } from '../support/importer.ts';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';
import type { EntityRecord } from '../support/records.ts';

const EXAMPLES = new URL('../../examples/', import.meta.url);
const COMMITS = fileURLToPath(new URL('commits.ndjson.gz', EXAMPLES));

let folder: string;
let kafka: LocalKafka;
let clickhouse: LocalClickHouse;
let pipeline: Pipeline;

// Engines of its own: this test kills them.
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-kill-'));
  [kafka, clickhouse] = await Promise.all([
    startKafka({ dataDir: join(folder, 'kafka') }),
    startClickHouse({ dataDir: join(folder, 'clickhouse') }),
  ]);
  pipeline = await startPipeline({ kafkaBrokers: kafka.brokers, clickhouseUrl: clickhouse.url, name: 'kill' });
});

afterAll(async () => {
  await pipeline?.stop();
  await clickhouse?.kill9();
  await kafka?.kill9();
  await rm(folder, { recursive: true, force: true });
});

/** Kills a service, and starts it again as a supervisor would. */
async function killService(name: keyof Pipeline['services']): Promise<void> {
  await pipeline.services[name].kill9();
  await pipeline.restart(name);
}

async function killEngine(engine: LocalKafka | LocalClickHouse): Promise<void> {
  await engine.kill9();
  await delay(1_000);
  await engine.restart();
}

test('every process is killed during an import, and everything that was accepted is stored once', async () => {
  const importing = runImporter(['--url', pipeline.services['ingest-api'].url, COMMITS], pipeline.key);
  let imported = false;
  const finished = importing.finally(() => {
    imported = true;
  });
  const kills: (() => Promise<void>)[] = [
    () => killService('writer'),
    () => killEngine(clickhouse),
    () => killService('ingest-api'),
    () => killService('query-api'),
    () => killEngine(kafka),
    () => killService('writer'),
  ];
  for (const kill of kills) {
    await delay(700);
    expect(imported, 'the import goes on while processes are killed').toBe(false);
    await kill();
  }
  const { code, output } = await finished;
  expect(code, output).toBe(0);

  const { events, organizations } = JSON.parse(await readFile(new URL('commits.expected.json', EXAMPLES), 'utf8')) as {
    events: number;
    organizations: Record<string, Record<string, unknown>>;
  };
  await pipeline.settled(events);
  await pipeline.drained();
  const sql = `SELECT count(), uniqExact(workspace_id, timestamp, uuid) FROM ${pipeline.database}.events FORMAT TSV`;
  expect(await readClickHouse(clickhouse.url, sql)).toBe(`${events}\t${events}`);
  for (const [id, properties] of Object.entries(organizations)) {
    const { body } = await pipeline.get<EntityRecord>(`/organizations/${encodeURIComponent(id)}`);
    expect(body.properties).toEqual(properties);
  }
}, 300_000);
