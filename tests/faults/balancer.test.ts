import { MIGRATE_ACCOUNT, QUERY_ACCOUNT, WRITER_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, onTestFinished, test } from 'vitest';
import { readClickHouse } from '../kit/clickhouse.ts';
import { ownClickHouse } from '../kit/engines.ts';
import { startHttpRouter } from '../kit/http-router.ts';
import { startService } from '../kit/service.ts';

/** Starts a writer and query-api over an address of ClickHouse. */
function startServices(CLICKHOUSE_URL: string) {
  const common = { CLICKHOUSE_URL, CLICKHOUSE_DATABASE: 'test_balancer' };
  const kafka = { KAFKA_BROKERS: inject('kafkaBrokers').join(','), KAFKA_TOPIC_PREFIX: 'balancer.' };
  const writer = startService('writer', 0, { ...common, ...kafka, ...WRITER_ACCOUNT, ...MIGRATE_ACCOUNT });
  const queryApi = startService('query-api', 0, { ...common, ...QUERY_ACCOUNT, QUERY_ANONYMOUS_WORKSPACE: 'test' });
  for (const service of [writer, queryApi]) onTestFinished(() => service.kill9());
  return { writer, queryApi };
}

test('a writer ends over a load balancer before two servers, query-api is not ready, and both say why', async () => {
  await using first = await ownClickHouse();
  await using second = await ownClickHouse();
  let turn = 0;
  await using balancer = await startHttpRouter(() => (turn++ % 2 === 0 ? first : second).url);
  const { writer, queryApi } = startServices(balancer.url);
  expect(await writer.endsItself()).not.toBe(0);
  expect(writer.log()).toContain('several servers answer at the address of ClickHouse');
  await eventually(() => queryApi.log()).toContain('several servers answer at the address of ClickHouse');
});

test('the same holds for a version that is too old', async () => {
  await using clickhouse = await ownClickHouse();
  const version = await readClickHouse(clickhouse.url, 'SELECT version()');
  const asOlder = (piece: Buffer) =>
    Buffer.from(piece.toString('latin1').replaceAll(version, version.replace(/^\d+\.\d/, '24.8')), 'latin1');
  await using server = await startHttpRouter(() => clickhouse.url, asOlder);
  const { writer, queryApi } = startServices(server.url);
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
  const { writer, queryApi } = startServices(server.url);
  expect(await writer.endsItself()).not.toBe(0);
  expect(writer.log()).toContain('the database has the engine Shared');
  await eventually(() => queryApi.log()).toContain('the database has the engine Shared');
});
