import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, test } from 'vitest';
import { expectBalanced } from '../kit/audit.ts';
import { readClickHouse } from '../kit/clickhouse.ts';
import { startCloud } from '../kit/cloud.ts';
import { diagnose, expectClickHouse } from '../kit/doctor.ts';
import { startLoad } from '../kit/load.ts';
import { sumMetric } from '../kit/metrics.ts';
import { startPipeline } from '../kit/pipeline.ts';
import { seededRandom } from '../kit/random.ts';
import { startReaders } from '../kit/readers.ts';
import { expectExactlyOnce } from '../kit/verify-delivery.ts';

/** How late a statement of a batch may arrive whose writer has given it up, in milliseconds. */
const LATE_MS_MAX = 6_000;

test('behind one address, replicas, Keeper, connections and writers are away for a while: everything is there once', async () => {
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
  await expectClickHouse(running.environment, 'clickhouse.server', '2 replicas share the rows');
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
  /** Waits until more has been stored, and reads are answered. */
  const goOn = async () => {
    const [before, answered] = [await stored(), readers.answeredSoFar()];
    await eventually(stored).toBeGreaterThan(before + 20);
    await eventually(readers.answeredSoFar).toBeGreaterThan(answered + 6);
  };
  const failures = () => sumMetric([running.services.writer, another], 'sluice_writer_batch_failures_total');
  /** Takes something away, waits until a batch has failed, and returns what gives it back. */
  const untilFailing = async <Back>(takeAway: () => Back) => {
    const before = await failures();
    const back = await takeAway();
    await eventually(failures).toBeGreaterThan(before);
    return back;
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
  await untilFailing(() => cloud.keeper.kill9());
  await cloud.keeper.restart();
  await goOn();
  const mend = await untilFailing(() => cloud.cut());
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
