import { randomUUID } from 'node:crypto';
import { findFreePorts } from '@sluice/local-stack/ports';
import { MIGRATE_ACCOUNT, QUERY_ACCOUNT, WRITER_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, onTestFinished, test } from 'vitest';
import { readClickHouse } from '../kit/clickhouse.ts';
import { expectStoredOnce } from '../kit/clients.ts';
import { ownClickHouse } from '../kit/engines.ts';
import { startHttpRouter } from '../kit/http-router.ts';
import { startPipeline } from '../kit/pipeline.ts';
import { startService } from '../kit/service.ts';

const DATABASE = 'test_balancer';

/** Starts a writer and query-api over an address of ClickHouse. */
async function startServices(CLICKHOUSE_URL: string) {
  const [ofWriter = 0, ofQueryApi = 0] = await findFreePorts(2);
  const common = { CLICKHOUSE_URL, CLICKHOUSE_DATABASE: DATABASE };
  const kafka = { KAFKA_BROKERS: inject('kafkaBrokers').join(','), KAFKA_TOPIC_PREFIX: 'balancer.' };
  const writer = startService('writer', ofWriter, { ...common, ...kafka, ...WRITER_ACCOUNT, ...MIGRATE_ACCOUNT });
  const queryApi = startService('query-api', ofQueryApi, {
    ...common,
    ...QUERY_ACCOUNT,
    QUERY_ANONYMOUS_WORKSPACE: 'test',
  });
  for (const service of [writer, queryApi]) onTestFinished(() => service.kill9());
  return { writer, queryApi };
}

/** The name by which a server is known in its responses; by default that of its host. */
const named = (name: string) => ({
  configFiles: { 'name.xml': `<clickhouse><display_name>${name}</display_name></clickhouse>` },
});

test('a writer and query-api end when a second server gets behind the address, and do not start there again', async () => {
  await using first = await ownClickHouse(named('one'));
  await using second = await ownClickHouse(named('two'));
  let [isOne, turn] = [true, 0];
  await using balancer = await startHttpRouter(() => (isOne || turn++ % 2 === 0 ? first : second).url);
  const { writer, queryApi } = await startServices(balancer.url);
  await Promise.all([writer.ready(), queryApi.ready()]);
  await copyTables(first.url, second.url);
  isOne = false;
  const reading = new AbortController();
  onTestFinished(() => reading.abort());
  void keepReading(queryApi.url, reading.signal);
  expect(await Promise.all([writer.endsItself(), queryApi.endsItself()])).toEqual([1, 1]);
  for (const service of [writer, queryApi]) {
    expect(service.log()).toContain('several servers answer at the address of ClickHouse (one, two)');
  }
  const again = await startServices(balancer.url);
  expect(await again.writer.endsItself()).not.toBe(0);
  expect(again.writer.log()).toContain('several servers answer at the address of ClickHouse');
  await eventually(() => again.queryApi.log()).toContain('several servers answer at the address of ClickHouse');
});

/** Creates the tables of a server on another one, without their rows, as operators of Kubernetes do for a new replica. */
async function copyTables(from: string, to: string, database = DATABASE): Promise<void> {
  const query = `SELECT create_table_query FROM system.tables WHERE database = '${database}' FORMAT JSONColumns`;
  const { create_table_query } = JSON.parse(await readClickHouse(from, query)) as { create_table_query: string[] };
  for (const statement of [`CREATE DATABASE ${database}`, ...create_table_query]) await readClickHouse(to, statement);
}

async function keepReading(url: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await fetch(`${url}/events`, { signal }).then(
      (response) => response.arrayBuffer(),
      () => undefined,
    );
  }
}

test('the same holds for a version that is too old', async () => {
  await using clickhouse = await ownClickHouse();
  const version = await readClickHouse(clickhouse.url, 'SELECT version()');
  const asOlder = (piece: Buffer) =>
    Buffer.from(piece.toString('latin1').replaceAll(version, version.replace(/^\d+\.\d/, '24.8')), 'latin1');
  await using server = await startHttpRouter(() => clickhouse.url, asOlder);
  const { writer, queryApi } = await startServices(server.url);
  expect(await writer.endsItself()).not.toBe(0);
  expect(writer.log()).toMatch(/ClickHouse 24\.8\.[\d.]+ is too old: 25\.4 or newer is needed/);
  await eventually(() => queryApi.log()).toMatch(/ClickHouse 24\.8\.[\d.]+ is too old/);
});

test('the same holds for a database that servers copy to one another', async () => {
  await using clickhouse = await ownClickHouse();
  // The engines of these names are as long, and the local engine has only the first.
  const asShared = (piece: Buffer) =>
    Buffer.from(piece.toString('latin1').replaceAll('"Atomic"', '"Shared"'), 'latin1');
  await using server = await startHttpRouter(() => clickhouse.url, asShared);
  const { writer, queryApi } = await startServices(server.url);
  expect(await writer.endsItself()).not.toBe(0);
  expect(writer.log()).toContain('the database has the engine Shared');
  await eventually(() => queryApi.log()).toContain('the database has the engine Shared');
});

test('while a second server gets the batches of a writer, nothing is stored there, and nothing is lost', async () => {
  // Both have the name of the host, so no response tells that there are two.
  await using first = await ownClickHouse();
  await using second = await ownClickHouse();
  let isBalanced = false;
  // As connections that are kept open do it: all statements of a batch get to one server, and those on its position to the other one.
  await using balancer = await startHttpRouter((_, path) =>
    isBalanced && path.includes('session_id=') ? second.url : first.url,
  );
  const kafkaBrokers = inject('kafkaBrokers');
  await using running = await startPipeline({ kafkaBrokers, clickhouseUrl: balancer.url, name: 'strays' });
  await copyTables(first.url, second.url, running.database);
  isBalanced = true;
  const events = Array.from({ length: 20 }, () => ({ event: 'e', uuid: randomUUID() }));
  expect((await running.submit({ foreignUserGroupId: 'g', events })).status).toBe(202);
  await eventually(() => running.services.writer.log()).toContain('another server answers');
  isBalanced = false;
  await expectStoredOnce(running, first.url, events.length);
  const tables = ['events', 'entities', 'writer_positions'].map(
    (table) => `(SELECT count() FROM ${running.database}.${table})`,
  );
  expect((await readClickHouse(second.url, `SELECT ${tables.join(' + ')}`)).trim()).toBe('0');
});
