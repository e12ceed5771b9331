import { explain, until } from '@sluice/shared/testing/until';
import { expect, test } from 'vitest';
import { KAFKA_API } from '../kit/kafka-proxy.ts';
import { ThreeBrokers } from '../kit/three-brokers.ts';
import { uuidInPartition } from '../kit/uuid-in-partition.ts';

const TOPIC = 'promised.events';

test('a 202 rests on two brokers: rows that only their leader has, or can have, are refused, and nothing is lost', async () => {
  await using cluster = await ThreeBrokers.start();
  const { kafka } = cluster;
  await using running = await cluster.startPipeline('promised', 3, {
    KAFKA_PARTITIONS: '2',
    PRODUCE_TIMEOUT_MS: '4000',
  });
  const ingestLog = () => running.services['ingest-api'].log().slice(-4_000);
  /** One event for each partition. */
  const submission = () => ({
    foreignUserGroupId: 'g',
    events: [0, 1].map((wanted) => ({ event: 'e', uuid: uuidInPartition(2, (partition) => partition === wanted) })),
  });
  const submit = async (body: object) => (await running.submit(body)).status;
  expect(await submit(submission())).toBe(202);

  // The brokers run, and get nothing from one another. Were only the responses lost, a replica that asks would be in sync again:
  // it has all that is committed, since nothing is committed that fewer than two brokers have.
  cluster.reaches = (_broker, api, clientId) => api !== KAFKA_API.fetch || !clientId.startsWith('broker-');
  const cutOff = submission();
  expect(await submit(cutOff)).toBe(503);
  let last = '';
  await until('leaders to be alone in sync', async () => {
    // A replica that lacks nothing is in sync, also of a leader that has moved meanwhile: on a busy machine it may.
    expect(await submit(cutOff)).toBe(503);
    const partitions = await cluster.partitionsOf(TOPIC);
    last = JSON.stringify(partitions);
    return partitions.length === 2 && partitions.every(({ isr }) => isr.length === 1);
  }).catch(explain(() => `The partitions are ${last}; ingest-api's log ends with ${ingestLog()}`));
  expect(await submit(cutOff)).toBe(503);
  cluster.reachAll();
  await until('the submission to be accepted', async () => (await submit(cutOff)) === 202);

  // What was accepted is in Kafka alone, and the leader of half of it is killed.
  running.services.writer.freeze();
  const kept = submission();
  await until('the submission to be accepted', async () => (await submit(kept)) === 202);
  const [leader = 0] = (await cluster.partitionsOf(TOPIC)).map((partition) => partition.leader - 1);
  await kafka.kill9(leader);
  running.services.writer.thaw();
  await running.settled(6);

  const follower = [0, 1, 2].find((broker) => broker !== leader) ?? 0;
  await kafka.kill9(follower);
  const left = submission();
  expect(await submit(left)).toBe(503);
  // A start ends once all brokers have joined.
  await Promise.all([leader, follower].map((broker) => kafka.restart(broker)));
  await until('the submission to be accepted', async () => (await submit(left)) === 202);
  await running.settled(8);
});
