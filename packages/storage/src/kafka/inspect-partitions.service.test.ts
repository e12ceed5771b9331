import { randomUUID } from 'node:crypto';
import { createLogger } from '@sluice/shared/base/log';
import { kafkaEnv, loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { createTopics } from '@sluice/shared/kafka/testing/create-topics';
import { withAdmin } from '@sluice/shared/kafka/topics';
import { describe, expect, inject, test } from 'vitest';
import { z } from 'zod';
import { nameOf, type Position, positionAfter } from '../protocol/position.ts';
import { compareOffsets, inspectPartitions, isSameLog } from './inspect-partitions.ts';

const last = { fingerprint: 'f', leaderEpoch: 3 };
const bounds = { low: 10n, high: 20n };

function compare(committed: bigint, position?: Position) {
  return compareOffsets({ name: 't/0', bounds, committed, position });
}
const stored = (nextOffset: bigint): Position => ({ nextOffset, last });
const chosen = (nextOffset: bigint): Position => ({ nextOffset, last: undefined });
const startsAt = (nextOffset: bigint) => ({ kind: 'sound', position: { nextOffset } });
const gap = (reason: string) => ({ kind: 'gap', gap: { reason } });

describe('a partition goes on', () => {
  test.each<[string, bigint, Position | undefined, bigint]>([
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

describe('a partition has a gap when', () => {
  test.each<[string, bigint, Position | undefined, string]>([
    ['messages were committed and ClickHouse has no position', 15n, undefined, 'nothing is stored'],
    ['messages were committed and deleted, and ClickHouse has no position', 10n, undefined, 'nothing is stored'],
    ['the log has lost its beginning, and ClickHouse has no position', -1n, undefined, 'nothing is stored'],
    ['messages that must be stored again are gone', 15n, stored(9n), 'messages are gone'],
    ['the message at the chosen offset is gone', 15n, chosen(9n), 'messages are gone'],
    ['the log ends before the committed offset', 21n, stored(15n), 'the log was cut off'],
    ['the log ends before the stored position', 15n, stored(21n), 'the log was cut off'],
    ['the log ends before the chosen offset', 15n, chosen(21n), 'the log was cut off'],
  ])('%s', (_, committed, position, reason) => {
    expect(compare(committed, position)).toMatchObject(gap(reason));
  });
});

describe('a partition of which ClickHouse has no position is new when its log is whole and', () => {
  const whole = { low: 0n, high: 20n };

  test.each<[string, bigint]>([
    ['nothing is committed', -1n],
    ['a writer of an earlier version has opened it before it had messages', 0n],
  ])('%s', (_, committed) => {
    expect(compareOffsets({ name: 't/0', bounds: whole, committed, position: undefined })).toMatchObject(startsAt(0n));
  });

  test('not when a single message was committed', () => {
    const inspection = compareOffsets({ name: 't/0', bounds: whole, committed: 1n, position: undefined });
    expect(inspection).toMatchObject(gap('nothing is stored'));
  });
});

test('a gap names its offsets', () => {
  expect(compare(4n, stored(4n))).toMatchObject({
    gap: { firstOffset: 4n, lastOffset: 9n, detail: expect.stringMatching(/^Kafka deleted 6 messages of t.0/) },
  });
  expect(compare(25n, stored(15n))).toMatchObject({ gap: { firstOffset: 20n, lastOffset: 24n } });
  const [committed, begun] = [compare(15n), compare(-1n)];
  expect(committed).toMatchObject({
    gap: { firstOffset: 0n, lastOffset: 14n, detail: expect.stringContaining('have committed offset 15') },
  });
  expect(begun).toMatchObject({
    gap: { firstOffset: 0n, lastOffset: 9n, detail: expect.stringContaining('begins at offset 10') },
  });
});

test('a partition that goes on elsewhere than at its stored position reads the record before, to notice another log later', async () => {
  const config = loadConfig(z.object(kafkaEnv), { KAFKA_BROKERS: inject('kafkaBrokers').join(',') });
  const kafka = createKafka(config, 'test', createLogger('test', 'silent'));
  const topic = `guard-${randomUUID()}`;
  const groupId = `group-${topic}`;
  const producer = kafka.producer();
  await producer.connect();
  await createTopics(kafka, [{ topic, numPartitions: 1 }]);
  await withAdmin(kafka, async (admin) => {
    await producer.send({ topic, messages: ['a', 'b', 'c'].map((value) => ({ value })) });
    await admin.setOffsets({ groupId, topic, partitions: [{ partition: 0, offset: '2' }] });
    const newest = await admin.fetchRecord({ topic, partition: 0, offset: '2' });
    if (!newest) throw new Error('the record is missing');
    const position = { topic, partition: 0, ...positionAfter(newest) };
    const positions = new Map([[nameOf(position), position]]);
    const [found] = await inspectPartitions(admin, groupId, { [topic]: [0] }, positions);
    expect(found?.inspection).toMatchObject({ kind: 'sound', position: { nextOffset: 2n, last: expect.anything() } });
    if (found?.inspection.kind !== 'sound') return;
    expect(await isSameLog(admin, { topic, partition: 0 }, found.inspection.position)).toBe(true);
    expect(await isSameLog(admin, { topic, partition: 0 }, { ...found.inspection.position, nextOffset: 3n })).toBe(
      false,
    );
  });
  await producer.disconnect();
});
