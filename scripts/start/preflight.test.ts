import { once } from 'node:events';
import { createServer } from 'node:net';
import { findFreePorts } from '@sluice/local-stack/ports';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { expect, test } from 'vitest';
import { findObstacles } from './preflight.ts';
import { readSettings } from './settings.ts';

async function settingsOnFreePorts(dataDir: string, more: NodeJS.ProcessEnv = {}) {
  const [ingest, query, writer, kafka, clickhouse] = (await findFreePorts(5)).map(String);
  const env = {
    SLUICE_DATA_DIR: dataDir,
    INGEST_PORT: ingest,
    QUERY_PORT: query,
    WRITER_PORT: writer,
    KAFKA_PORT: kafka,
    CLICKHOUSE_PORT: clickhouse,
  };
  return readSettings({ ...env, ...more }, '/').settings;
}

test('nothing stands in the way of a run on free ports', async () => {
  await using dir = await makeTempDir();
  expect(await findObstacles(await settingsOnFreePorts(dir.path))).toEqual([]);
});

test('each port that is taken is named, with the variable that changes it', async () => {
  await using dir = await makeTempDir();
  const settings = await settingsOnFreePorts(dir.path);
  const servers = [settings.ports.query, settings.ports.kafka].map((port) => createServer().listen(port, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  expect(await findObstacles(settings)).toEqual([
    `Port ${settings.ports.query} is taken: stop what listens there, or set QUERY_PORT to another port.`,
    `Port ${settings.ports.kafka} is taken: stop what listens there, or set KAFKA_PORT to another port.`,
  ]);
  const external = { ...settings, externalKafka: `127.0.0.1:${settings.ports.kafka}` };
  expect(await findObstacles(external)).toHaveLength(1);
  for (const server of servers) server.close();
});
