import { once } from 'node:events';
import { createServer } from 'node:net';
import { findFreePorts, isPortFree } from '@sluice/local-stack/ports';
import { makeTempDir } from '@sluice/local-stack/testing/temp-dir';
import { expect, test } from 'vitest';
import { findObstacles } from './preflight.ts';
import { readSettings } from './settings.ts';
import { checkPorts } from './taken-ports.ts';

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

test('each port that is taken is named with the process that holds it, and free ports are offered', async () => {
  await using dir = await makeTempDir();
  const settings = await settingsOnFreePorts(dir.path);
  const { query, kafka } = settings.ports;
  const servers = [query, kafka].map((port) => createServer().listen(port, '127.0.0.1'));
  await Promise.all(servers.map((server) => once(server, 'listening')));
  const obstacles = await findObstacles(settings);
  expect(obstacles).toEqual([
    expect.stringContaining(`Port ${query} is taken by process ${process.pid} (`),
    expect.stringContaining(`Port ${kafka} is taken by process ${process.pid} (`),
    expect.stringMatching(/^Stop what holds them, or start on free ports: QUERY_PORT=\d+ KAFKA_PORT=\d+ npm start$/),
  ]);
  const offered = [...(obstacles[2] ?? '').matchAll(/=(\d+)/g)].map(([, port]) => Number(port));
  expect(await Promise.all(offered.map((port) => isPortFree(port)))).toEqual([true, true]);

  const external = { ...settings, externalKafka: `127.0.0.1:${kafka}` };
  expect(await findObstacles(external)).toEqual([
    expect.stringContaining(`Port ${query} is taken`),
    expect.stringMatching(/: QUERY_PORT=\d+ npm start$/),
  ]);
  for (const server of servers) server.close();
});

test('the port that is offered for one is not the port of another', async () => {
  await using dir = await makeTempDir();
  const settings = await settingsOnFreePorts(dir.path);
  const { query } = settings.ports;
  await using server = createServer().listen(query, '127.0.0.1');
  await once(server, 'listening');
  const ports = { ...settings.ports, kafka: query + 1_000 };
  const [, offer = ''] = await checkPorts({ ...settings, ports });
  expect(Number(/QUERY_PORT=(\d+)/.exec(offer)?.[1])).toBeGreaterThan(query + 1_000);
});
