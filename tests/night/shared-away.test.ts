import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, test } from 'vitest';
import { expectBalanced } from '../kit/audit.ts';
import { readClickHouse } from '../kit/clickhouse.ts';
import { startCloud } from '../kit/cloud.ts';
import { diagnose } from '../kit/doctor.ts';
import { startLoad } from '../kit/load.ts';
import { startPipeline } from '../kit/pipeline.ts';
import { seededRandom } from '../kit/random.ts';
import { startReaders } from '../kit/readers.ts';
import { expectExactlyOnce } from '../kit/verify-delivery.ts';

/** How late a statement of a batch may arrive whose writer has given it up, in milliseconds. */
const LATE_MS_MAX = 6_000;

test('behind one address, replicas, connections and writers are away for a while: everything is there once', async () => {
  const random = seededRandom(inject('seed'));
  let [isUnreliable, late] = [false, 0];
  await using cloud = await startCloud({
    fateOf: ({ queryId }) => {
      const isLost = isUnreliable && queryId.includes('/store-') && random() < 0.05;
      if (!isLost) return undefined;
      late += 1;
      return { loses: true, delayMs: random() * LATE_MS_MAX };
    },
  });
  await using running = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: cloud.url,
    name: 'sharedaway',
    env: { CLICKHOUSE_REPLICATION: 'shared' },
  });
  const { 'ingest-api': ingest, 'query-api': query } = running.services;
  await running.submit({ foreignUserGroupId: 'g', foreignUserId: 'u0', events: [{ event: 'first' }] });
  await running.settled(1);

  for (const path of ['/events/stream', '/webhooks', '/alerts']) expect((await running.get(path)).status).toBe(501);
  const { results } = await diagnose(['writer', 'query-api'], running.environment);
  const ofClickHouse = results.filter(({ name }) => name.startsWith('clickhouse.'));
  expect(ofClickHouse.filter(({ state }) => state === 'wrong' || state === 'skipped')).toEqual([]);
  expect(ofClickHouse).toContainEqual(
    expect.objectContaining({ name: 'clickhouse.server', found: expect.stringContaining('2 replicas share the rows') }),
  );
  // An account that only reads may not ask the others, and need not.
  const ofReader = await diagnose(['query-api'], running.environmentOf('query-api'));
  expect(ofReader.results).toContainEqual(expect.objectContaining({ name: 'clickhouse.server', state: 'ok' }));

  const another = await running.startAnother('writer');
  await using load = startLoad({ pipeline: running, urls: () => [ingest.url], concurrency: 3 });
  const paths = ['/events?limit=20', '/events?event=load&limit=5', '/users/u0', '/organizations/g'];
  await using readers = startReaders({ pipeline: running, urls: () => [query.url], paths });
  const [one, other] = cloud.servers;
  if (!one || !other) throw new Error('there are not two');
  const stored = async () =>
    Number(await readClickHouse(one.url, `SELECT uniqExact(uuid) FROM ${running.database}.events`));
  /** Waits until more has been stored. */
  const goOn = async () => {
    const before = await stored();
    await eventually(stored).toBeGreaterThan(before + 20);
  };

  await goOn();
  isUnreliable = true;
  await eventually(() => late).toBeGreaterThan(2);
  isUnreliable = false;
  await goOn();
  for (const server of [other, one]) {
    await server.kill9();
    await server.restart();
    await goOn();
  }
  const mend = cloud.cut();
  await eventually(() => running.services.writer.log()).toContain('storing a batch failed');
  mend();
  await goOn();
  await running.killAndRestart('writer');
  await goOn();
  // For longer than a session of Kafka, so that the other one takes its partitions over.
  const joins = () => running.services.writer.log().split('joined the consumer group').length;
  const before = joins();
  another.freeze();
  await eventually(joins).toBeGreaterThan(before);
  await goOn();
  another.thaw();
  await goOn();

  await readers.stop();
  const tally = await load.stop();
  await running.drained();
  for (const { url } of cloud.servers) {
    await readClickHouse(url, `SYSTEM SYNC REPLICA ${running.database}.events`);
    await expectExactlyOnce(running, url, tally);
  }
  await expectBalanced(running, { before: [] });

  await running.deleteUser('u0');
  const ofUser = (url: string) =>
    readClickHouse(url, `SELECT count() FROM ${running.database}.events WHERE user_id = 'u0'`).then(Number);
  await eventually(async () => (await running.get<{ total: number }>('/events?userId=u0&limit=0')).body.total).toBe(0);
  for (const { url } of cloud.servers) await eventually(() => ofUser(url)).toBe(0);
});
