// What Kafka refuses of one partition or one topic stays the trouble of those who write to it.

import { randomUUID } from 'node:crypto';
import { createLogger } from '@sluice/shared/base/log';
import { createKafka } from '@sluice/shared/kafka/client';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { eventually } from '@sluice/shared/testing/eventually';
import kafkajs from 'kafkajs';
import { afterEach, beforeEach, expect, inject, test } from 'vitest';
import { type Ingest, post, startIngest } from '../testing/ingest.ts';

const brokers = inject('kafkaBrokers');
let prefix: string;
let ingest: Ingest;

beforeEach(async () => {
  prefix = `refused-${randomUUID()}.`;
  ingest = await startIngest(brokers, { KAFKA_TOPIC_PREFIX: prefix, PRODUCE_TIMEOUT_MS: '3000' });
});
afterEach(() => ingest.stop());

/** Gives a topic of this ingest-api a setting, and takes all others back. */
async function configure(topic: 'events' | 'entities', name: string, value: string): Promise<void> {
  const config = { KAFKA_BROKERS: brokers, KAFKA_TOPIC_PREFIX: '', KAFKA_PARTITIONS: 1, KAFKA_SSL: false };
  const configEntries = [
    { name: 'message.timestamp.type', value: 'LogAppendTime' },
    { name, value },
  ];
  const resources = [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: `${prefix}${topic}`, configEntries }];
  await withAdmin(createKafka(config, 'test', createLogger('test', 'silent')), (admin) =>
    admin.alterConfigs({ validateOnly: false, resources }),
  );
}

const metric = async (name: string) =>
  Number(new RegExp(`^${name} (\\d+)`, 'm').exec((await ingest.app.inject('/metrics')).body)?.[1]);
const event = (properties: object = {}) => ({
  event: 'e',
  uuid: randomUUID(),
  timestamp: new Date().toISOString(),
  properties,
});

test('a topic that refuses rows delays only requests that write to it, and nothing acknowledged is sent again', async () => {
  // Records of a compacted topic need keys.
  await configure('entities', 'cleanup.policy', 'compact');
  const uuids: string[] = [];
  const both = () => {
    const sent = event();
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
    const sent = event();
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

test('a deletion that partitions refuse is sent again with the time of its first attempt: what came between stays', async () => {
  const remove = (query = '') =>
    ingest.app.inject({
      method: 'DELETE',
      url: `/v1/users?foreignId=u${query}`,
      headers: { authorization: 'Bearer all' },
    });
  await configure('events', 'cleanup.policy', 'compact');
  await eventually(async () => (await remove()).statusCode).toBe(503);
  const { code, detail } = (await remove()).json();
  expect(code).toBe('event_log_unavailable');
  const [, before = ''] = /before=(\S+Z)/.exec(detail) ?? [];
  await configure('events', 'cleanup.policy', 'delete');
  await eventually(async () => (await remove(`&before=${before}`)).statusCode).toBe(202);
  expect((await remove('&before=2999-01-01')).statusCode).toBe(202);
  const versions = (await ingest.read('events', 6)).flatMap(({ rows }) => rows.map((row) => Number(row['version'])));
  expect(versions.filter((version) => version === Date.parse(before) * 1_000).length).toBeGreaterThanOrEqual(3);
  expect(Math.max(...versions)).toBeLessThanOrEqual((Date.now() + 1) * 1_000);
  expect((await remove('&before=soon')).json()).toMatchObject({ status: 400, errors: [{ path: 'before' }] });
});

test('a record batch that is larger than the topic takes is sent in parts', async () => {
  await configure('events', 'max.message.bytes', '150000');
  const bodies = Array.from({ length: 12 }, () => ({
    foreignUserGroupId: 'a',
    events: [event({ pad: 'x'.repeat(60_000) })],
  }));
  const send = async () => {
    const responses = await Promise.all(bodies.map((body) => post(ingest.app, body)));
    expect(responses.map(({ statusCode }) => statusCode)).toEqual(Array(12).fill(202));
    return ingest.warnings.length;
  };
  // On a busy machine the requests may not meet in one batch.
  await eventually(send).toBeGreaterThan(0);
  const warnings = ingest.warnings.length;
  expect(await send(), 'what the topic takes is known by now').toBe(warnings);
});

test('however much waits for a partition, Kafka is sent no record batch that it would refuse', async () => {
  const single = await startIngest(brokers, { KAFKA_PARTITIONS: '1', PRODUCE_LINGER_MS: '1000' });
  try {
    const body = {
      foreignUserGroupId: 'a',
      events: Array.from({ length: 20 }, () => event({ pad: 'x'.repeat(30_000) })),
    };
    const responses = await Promise.all(Array.from({ length: 4 }, () => post(single.app, body)));
    expect(responses.map(({ statusCode }) => statusCode)).toEqual(Array(4).fill(202));
    expect(single.warnings).toEqual([]);
  } finally {
    await single.stop();
  }
});

test('calls that are taken and rejected in turn, each a message of its own, fit into record batches', async () => {
  const calls = Array.from({ length: 300 }, () => [{ type: 'track', userId: 'u', event: 'e' }, { type: 'none' }]);
  const single = await startIngest(brokers, { KAFKA_PARTITIONS: '1', PRODUCE_LINGER_MS: '1000' });
  try {
    const send = () => post(single.app, { batch: calls.flat() }, { path: '/v1/batch' });
    const responses = await Promise.all(Array.from({ length: 16 }, send));
    expect(new Set(responses.map(({ statusCode }) => statusCode))).toEqual(new Set([200]));
    expect(responses[0]?.json()).toMatchObject({ rejectedCount: 300 });
    expect(single.warnings).toEqual([]);
  } finally {
    await single.stop();
  }
});

test('a row that is larger than the topic takes is refused at once, by name, and delays nobody', async () => {
  await configure('events', 'max.message.bytes', '150000');
  const large = { foreignUserGroupId: 'a', events: [event({ pad: 'x'.repeat(200_000) })] };
  const small = { foreignUserGroupId: 'a', events: Array.from({ length: 20 }, () => event()) };
  const [refused, accepted] = await Promise.all([post(ingest.app, large), post(ingest.app, small)]);
  expect(accepted.statusCode).toBe(202);
  expect(refused.statusCode).toBe(413);
  expect(refused.json()).toMatchObject({ code: 'body_too_large', errors: [{ code: 'too_large' }] });
});
