import { randomUUID } from 'node:crypto';
import { loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { createLogger } from '@sluice/shared/log';
import { describe, expect, inject, test } from 'vitest';
import { configSchema } from './config.ts';
import { inspect, isSameLog, judgeOffsets } from './offset-guard.ts';
import type { Place } from './place.ts';

const last = { fingerprint: 'f', leaderEpoch: 3 };
const bounds = { low: 10n, high: 20n };

function judge(committed: bigint, position?: Place) {
  return judgeOffsets({ name: 't/0', bounds, committed, position });
}
const stored = (nextOffset: bigint): Place => ({ nextOffset, last });
const chosen = (nextOffset: bigint): Place => ({ nextOffset, last: undefined });
const startsAt = (nextOffset: bigint) => ({ kind: 'sound', place: { nextOffset } });
const fault = (reason: string) => ({ kind: 'fault', fault: { reason } });

describe('a partition goes on', () => {
  test.each<[string, bigint, Place | undefined, bigint]>([
    ['at the oldest message when nothing is known', -1n, undefined, 10n],
    ['at what was committed', 15n, undefined, 15n],
    ['at what is stored when Kafka has forgotten the group', -1n, stored(14n), 14n],
    ['at what is stored when ClickHouse is an older copy', 18n, stored(14n), 14n],
    ['at what was committed when more is stored', 12n, stored(14n), 12n],
    ['at the oldest message when what is gone was stored', 5n, stored(14n), 10n],
    ['where retention has removed exactly what was stored', 10n, stored(10n), 10n],
    ['at the end', 20n, stored(20n), 20n],
    ['where an operator chose, behind what was committed', 11n, chosen(17n), 17n],
    ['where an operator chose, before what was committed', 17n, chosen(11n), 11n],
  ])('%s', (_, committed, position, expected) => {
    expect(judge(committed, position)).toMatchObject(startsAt(expected));
  });
});

describe('a partition is at fault when', () => {
  test.each<[string, bigint, Place | undefined, string]>([
    ['the committed offset is gone', 9n, undefined, 'messages are gone'],
    ['what is to be stored again is gone', 15n, stored(9n), 'messages are gone'],
    ['what an operator chose is gone', 15n, chosen(9n), 'messages are gone'],
    ['the log ends before the committed offset', 21n, undefined, 'the log was cut off'],
    ['the log ends before what is stored', 15n, stored(21n), 'the log was cut off'],
    ['the log ends before what an operator chose', 15n, chosen(21n), 'the log was cut off'],
  ])('%s', (_, committed, position, reason) => {
    expect(judge(committed, position)).toMatchObject(fault(reason));
  });
});

test('a fault says which offsets it concerns', () => {
  expect(judge(4n)).toMatchObject({
    fault: { firstOffset: 4n, lastOffset: 9n, detail: expect.stringMatching(/^6 messages of t.0 are gone/) },
  });
  expect(judge(25n)).toMatchObject({ fault: { firstOffset: 20n, lastOffset: 24n } });
});

test('a partition that goes on elsewhere than at its position knows the record before, to notice another log later', async () => {
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
    const [found] = await inspect(admin, groupId, { [topic]: [0] }, new Map());
    expect(found?.verdict).toMatchObject({ kind: 'sound', place: { nextOffset: 2n, last: expect.anything() } });
    if (found?.verdict.kind !== 'sound') return;
    expect(await isSameLog(admin, topic, 0, found.verdict.place)).toBe(true);
    expect(await isSameLog(admin, topic, 0, { ...found.verdict.place, nextOffset: 3n })).toBe(false);
  });
  await producer.disconnect();
});
