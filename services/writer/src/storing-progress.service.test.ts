import { createLogger, type Logger } from '@sluice/shared/base/log';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, onTestFinished, test } from 'vitest';
import { StoringProgress } from './storing-progress.ts';
import { batchOf, createTestStore, eventRow, NOON } from './testing/store.ts';

const GROUP = 'progress';

test('the owner records until when everything is stored, and in which blocks', async () => {
  const db = await createTestStore(inject('clickhouseUrl'));
  onTestFinished(() => db.close());
  const recorded = () =>
    db.read<{ through: string; block: number }>(
      'SELECT toString(through) AS through, newest_block AS block FROM storing_progress ORDER BY recorded_at DESC LIMIT 1',
    );
  const newest = async () =>
    (await db.read<{ block: number }>('SELECT max(_block_number) AS block FROM events'))[0]?.block;
  let throughMs: number | undefined;
  const progress = new StoringProgress({
    client: db.writerClient,
    groupId: GROUP,
    storedThrough: async () => (throughMs === undefined ? undefined : { throughMs, committed: [] }),
    logger: createLogger('test', 'silent'),
    intervalMs: 100,
  });
  onTestFinished(() => progress.stop());
  await progress.start();
  progress.setOwner(true);
  throughMs = NOON;
  await eventually(recorded).toEqual([{ through: '2026-03-01 12:00:00.000', block: 0 }]);
  await db.store(batchOf([eventRow()]));
  await db.store(batchOf([eventRow()]));
  throughMs = NOON + 1;
  await eventually(recorded).toEqual([{ through: '2026-03-01 12:00:00.001', block: await newest() }]);
  // What is not known is not recorded, and nothing is by others.
  throughMs = undefined;
  const [before] = await recorded();
  progress.setOwner(false);
  throughMs = NOON + 2;
  await progress.stop();
  expect(await recorded()).toEqual([before]);
});

test('a database that lacks what its group has committed has no progress', async () => {
  const db = await createTestStore(inject('clickhouseUrl'));
  onTestFinished(() => db.close());
  let offset = 5n;
  const stored = () => ({ throughMs: NOON, committed: [{ topic: 't', partition: 3, offset }] });
  const reasons: string[] = [];
  const progress = new StoringProgress({
    client: db.writerClient,
    groupId: GROUP,
    storedThrough: async () => stored(),
    logger: { warn: ({ reason }: { reason: string }) => reasons.push(reason) } as unknown as Logger,
    intervalMs: 100,
  });
  onTestFinished(() => progress.stop());
  await progress.start();
  progress.setOwner(true);
  const recorded = async () => (await db.read('SELECT * FROM storing_progress')).length;
  await eventually(() => reasons).toEqual([
    'the database lacks messages of t/3: the group has committed offset 5, and no position is stored',
  ]);
  const position = { group_id: GROUP, topic: 't', partition: 3, leader_epoch: -1 };
  const store = (next_offset: number) =>
    db.client.insert({ table: 'writer_positions', values: [{ ...position, next_offset }], format: 'JSONEachRow' });
  await store(5);
  await eventually(recorded).toBeGreaterThan(0);
  // A disk of an earlier day: what was committed since then is read from Kafka first.
  offset = 7n;
  await eventually(() => reasons.at(-1)).toMatch(/committed offset 7, and 5 is stored$/);
  const before = await recorded();
  await progress.stop();
  expect(await recorded()).toBe(before);
});
