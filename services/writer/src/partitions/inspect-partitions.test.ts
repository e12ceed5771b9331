import { randomUUID } from 'node:crypto';
import { loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { createLogger } from '@sluice/shared/log';
import { describe, expect, inject, test } from 'vitest';
import { configSchema } from '../config.ts';
import { compareOffsets, inspectPartitions, isSameLog } from './inspect-partitions.ts';
import type { Position } from './position.ts';

const last = { fingerprint: 'f', leaderEpoch: 3 };
const bounds = { low: 10n, high: 20n };

function compare(committed: bigint, position?: Position) {
  return compareOffsets({ name: 't/0', bounds, committed, position });
}
const stored = (nextOffset: bigint): Position => ({ nextOffset, last });
const chosen = (nextOffset: bigint): Position => ({ nextOffset, last: undefined });
const startsAt = (nextOffset: bigint) => ({ kind: 'sound', position: { nextOffset } });
const fault = (reason: string) => ({ kind: 'fault', fault: { reason } });

describe('a partition goes on', () => {
  test.each<[string, bigint, Position | undefined, bigint]>([
    ['at the oldest message when nothing is known', -1n, undefined, 10n],
    ['at the committed offset', 15n, undefined, 15n],
    ['at the stored position when Kafka has forgotten the group', -1n, stored(14n), 14n],
    ['at the stored position when ClickHouse was restored from a backup', 18n, stored(14n), 14n],
    ['at the committed offset when more is stored', 12n, stored(14n), 12n],
    ['at the oldest message when the deleted messages were stored', 5n, stored(14n), 10n],
    ['where retention has deleted exactly what was stored', 10n, stored(10n), 10n],
    ['at the end', 20n, stored(20n), 20n],
    ['where an operator chose, after the committed offset', 11n, chosen(17n), 17n],
    ['where an operator chose, before the committed offset', 17n, chosen(11n), 11n],
  ])('%s', (_, committed, position, expected) => {
    expect(compare(committed, position)).toMatchObject(startsAt(expected));
  });
});

describe('a partition is at fault when', () => {
  test.each<[string, bigint, Position | undefined, string]>([
    ['the message at the committed offset is gone', 9n, undefined, 'messages are gone'],
    ['messages that must be stored again are gone', 15n, stored(9n), 'messages are gone'],
    ['the message at the chosen offset is gone', 15n, chosen(9n), 'messages are gone'],
    ['the log ends before the committed offset', 21n, undefined, 'the log was cut off'],
    ['the log ends before the stored position', 15n, stored(21n), 'the log was cut off'],
    ['the log ends before the chosen offset', 15n, chosen(21n), 'the log was cut off'],
  ])('%s', (_, committed, position, reason) => {
    expect(compare(committed, position)).toMatchObject(fault(reason));
  });
});

test('a fault names its offsets', () => {
  expect(compare(4n)).toMatchObject({
    fault: { firstOffset: 4n, lastOffset: 9n, detail: expect.stringMatching(/^Kafka deleted 6 messages of t.0/) },
  });
  expect(compare(25n)).toMatchObject({ fault: { firstOffset: 20n, lastOffset: 24n } });
});

test('a partition that goes on elsewhere than at its stored position reads the record before, to notice another log later', async () => {
  const config = loadConfig(configSchema, {
    KAFKA_BROKERS: inject('kafkaBrokers').join(','),
    CLICKHOUSE_URL: 'http://127.0.0.1',
  });
  const kafka = createKafka(config, 'test', createLogger('test', 'silent'));
  const topic = `guard-${randomUUID()}`;
  const groupId = `group-${topic}`;
  const producer = kafka.producer();
  await producer.connect();
  await withAdmin(kafka, async (admin) => {
    await admin.createTopics({ topics: [{ topic, numPartitions: 1 }], waitForLeaders: true });
    await producer.send({ topic, messages: ['a', 'b', 'c'].map((value) => ({ value })) });
    await admin.setOffsets({ groupId, topic, partitions: [{ partition: 0, offset: '2' }] });
    const [found] = await inspectPartitions(admin, groupId, { [topic]: [0] }, new Map());
    expect(found?.inspection).toMatchObject({ kind: 'sound', position: { nextOffset: 2n, last: expect.anything() } });
    if (found?.inspection.kind !== 'sound') return;
    expect(await isSameLog(admin, { topic, partition: 0 }, found.inspection.position)).toBe(true);
    expect(await isSameLog(admin, { topic, partition: 0 }, { ...found.inspection.position, nextOffset: 3n })).toBe(
      false,
    );
  });
  await producer.disconnect();
});
