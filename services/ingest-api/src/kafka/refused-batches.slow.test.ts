// What Kafka refuses of one partition or one topic stays the trouble of those who write to it.

import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, test } from 'vitest';
import { post, startIngest } from '../testing/ingest.ts';
import { anEvent, configure, ingest, startBeforeEach } from '../testing/refusing-topics.ts';

startBeforeEach();

const metric = async (name: string) =>
  Number(new RegExp(`^${name} (\\d+)`, 'm').exec((await ingest.app.inject('/metrics')).body)?.[1]);

test('a topic that refuses rows delays only requests that write to it, and nothing acknowledged is sent again', async () => {
  // Records of a compacted topic need keys.
  await configure('entities', 'cleanup.policy', 'compact');
  const uuids: string[] = [];
  const both = () => {
    const sent = anEvent();
    uuids.push(sent.uuid);
    return post(ingest.app, { foreignUserGroupId: 'a', properties: { p: 1 }, events: [sent] });
  };
  await eventually(async () => (await both()).statusCode).toBe(503);
  let refused = false;
  const refusing = both().then(({ statusCode }) => {
    refused = true;
    return statusCode;
  });
  while (!refused) {
    const sent = anEvent();
    expect((await post(ingest.app, { foreignUserGroupId: 'a', events: [sent] })).statusCode).toBe(202);
    uuids.push(sent.uuid);
  }
  expect(await refusing).toBe(503);
  expect(await metric('sluice_ingest_failing_partitions')).toBe(1);
  expect(uuids.length).toBeGreaterThan(5);
  await configure('entities', 'cleanup.policy', 'delete');
  await eventually(async () => (await both()).statusCode).toBe(202);
  expect(await metric('sluice_ingest_failing_partitions')).toBe(0);
  const messages = await ingest.read('events', uuids.length);
  const stored = messages.flatMap(({ rows }) => rows.map((row) => row['uuid']));
  expect(stored.length, 'copies in Kafka').toBe(new Set(stored).size);
});

test('however much waits for a partition, Kafka is sent no record batch that it would refuse', async () => {
  const single = await startIngest(inject('kafkaBrokers'), { KAFKA_PARTITIONS: '1', PRODUCE_LINGER_MS: '1000' });
  try {
    const body = {
      foreignUserGroupId: 'a',
      events: Array.from({ length: 20 }, () => anEvent({ pad: 'x'.repeat(30_000) })),
    };
    const responses = await Promise.all(Array.from({ length: 4 }, () => post(single.app, body)));
    expect(responses.map(({ statusCode }) => statusCode)).toEqual(Array(4).fill(202));
    expect(single.warnings).toEqual([]);
  } finally {
    await single.stop();
  }
});
