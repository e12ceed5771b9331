import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { MIGRATE_ACCOUNT, QUERY_ACCOUNT, WRITER_ACCOUNT } from '@sluice/shared/clickhouse/testing/test-accounts';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, onTestFinished, test } from 'vitest';
import { ownClickHouse } from '../kit/engines.ts';
import { startService } from '../kit/service.ts';

/**
 * Gives each connection to the next of the servers, as a load balancer does.
 *
 * @param change what becomes of a piece of a response
 */
async function startBalancer(urls: readonly string[], change = (piece: Buffer) => piece): Promise<string> {
  let turn = 0;
  const server = createServer((client) => {
    const { hostname, port } = new URL(urls[turn++ % urls.length] ?? '');
    const upstream = connect(Number(port), hostname);
    for (const socket of [client, upstream]) {
      socket.on('error', () => undefined);
      socket.on('close', () => [client, upstream].map((one) => one.destroy()));
    }
    client.pipe(upstream);
    upstream.on('data', (piece: Buffer) => client.write(change(piece)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

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
  const { writer, queryApi } = startServices(await startBalancer([first.url, second.url]));
  expect(await writer.endsItself()).not.toBe(0);
  expect(writer.log()).toContain('several servers answer at the address of ClickHouse');
  await eventually(() => queryApi.log()).toContain('several servers answer at the address of ClickHouse');
});

test('the same holds for a database that servers copy to one another', async () => {
  await using clickhouse = await ownClickHouse();
  // The engines of these names are as long, and the local engine has only the first.
  const asShared = (piece: Buffer) =>
    Buffer.from(piece.toString('latin1').replaceAll('"Atomic"', '"Shared"'), 'latin1');
  const { writer, queryApi } = startServices(await startBalancer([clickhouse.url], asShared));
  expect(await writer.endsItself()).not.toBe(0);
  expect(writer.log()).toContain('the database has the engine Shared');
  await eventually(() => queryApi.log()).toContain('the database has the engine Shared');
});
