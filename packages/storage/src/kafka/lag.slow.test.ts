import { eventually } from '@sluice/shared/testing/eventually';
import { expect, onTestFinished, test } from 'vitest';
import { createTopic } from '../testing/lag-topic.ts';

const HOUR_MS = 3_600_000;

test('everything is stored through now where nothing waits, and else through the time of the oldest message', async () => {
  const { kafka, topic, groupId, lag, send } = await createTopic();
  const startedMs = Date.now();
  const through = async () => (await lag.storedThrough())?.throughMs ?? 0;
  await eventually(through).toBeGreaterThan(startedMs);
  await send({ value: 'a' });
  const sentMs = Date.now();
  await eventually(async () => (await lag.read())?.[0]?.messages).toBe(1);
  await eventually(async () => Date.now() - sentMs).toBeGreaterThan(1_500);
  expect(await through()).toBeLessThanOrEqual(sentMs);
  const admin = kafka.admin();
  await admin.connect();
  onTestFinished(() => admin.disconnect());
  await admin.setOffsets({ groupId, topic, partitions: [{ partition: 0, offset: '1' }] });
  await eventually(through).toBeGreaterThan(sentMs);
  expect((await lag.storedThrough())?.committed).toEqual([{ topic, partition: 0, offset: 1n }]);
});

test('the headroom is the time until Kafka deletes the oldest message that is not committed', async () => {
  const createDayTopic = async (...agesHours: readonly number[]) => {
    const created = await createTopic([
      { name: 'retention.ms', value: String(24 * HOUR_MS) },
      { name: 'message.timestamp.type', value: 'CreateTime' },
    ]);
    for (const hours of agesHours) {
      await created.send({ value: 'v', timestamp: String(Date.now() - hours * HOUR_MS) });
    }
    const headroomHours = async () => Math.ceil(((await created.read())?.headroomSeconds ?? Number.NaN) / 3_600);
    return { ...created, headroomHours };
  };
  const { kafka, topic, groupId, headroomHours } = await createDayTopic(20, 14, 22);
  await eventually(headroomHours).toBe(4);
  const admin = kafka.admin();
  await admin.connect();
  onTestFinished(() => admin.disconnect());
  await admin.setOffsets({ groupId, topic, partitions: [{ partition: 0, offset: '1' }] });
  await eventually(headroomHours).toBe(10);
  // Kafka deletes nothing while the segment has a younger message.
  const overdue = await createDayTopic(30, 1);
  await eventually(overdue.headroomHours).toBe(0);
});
