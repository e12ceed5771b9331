import { until } from '@sluice/shared/testing/until';
import { expect, test } from 'vitest';
import { ThreeBrokers } from '../kit/three-brokers.ts';
import { submissionToBoth } from '../kit/uuid-in-partition.ts';

test('a 202 rests on two brokers: the leader is killed, and nothing is lost; without a second broker, nothing is accepted', async () => {
  await using cluster = await ThreeBrokers.start();
  const { kafka } = cluster;
  await using running = await cluster.startPipeline('promised', 3, {
    KAFKA_PARTITIONS: '2',
    PRODUCE_TIMEOUT_MS: '4000',
  });
  const submit = async (body: object) => (await running.submit(body)).status;
  expect(await submit(submissionToBoth())).toBe(202);

  // What was accepted is in Kafka alone, and the leader of half of it is killed.
  running.services.writer.freeze();
  const kept = submissionToBoth();
  await until('the submission to be accepted', async () => (await submit(kept)) === 202);
  const [leader = 0] = (await cluster.partitionsOf('promised.events')).map((partition) => partition.leader - 1);
  await kafka.kill9(leader);
  running.services.writer.thaw();
  await running.settled(4);

  await kafka.kill9([0, 1, 2].find((broker) => broker !== leader) ?? 0);
  expect(await submit(submissionToBoth())).toBe(503);
});
