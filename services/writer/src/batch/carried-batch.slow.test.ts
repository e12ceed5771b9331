import { expect, inject, onTestFinished, test } from 'vitest';
import { batchOf, createTestStore, eventRow, messages, NOON } from '../testing/store.ts';

const ROWS = 50_000;
const BYTES_OF_ROW = 1_000;

test('a batch of 50 MB is stored where its rows travel, also when its first row or its last one is bad', async () => {
  const db = await createTestStore(inject('clickhouseUrl'), undefined, 'carried');
  onTestFinished(() => db.close());
  const lines = Array.from({ length: ROWS }, (_, index) => {
    const row = eventRow({ workspace_id: 'large', timestamp: NOON + index, user_id: `u${index % 100}` });
    return JSON.stringify({ ...row, properties: { text: 'x'.repeat(BYTES_OF_ROW) } });
  });
  const bad = '{"unknown":1}';
  const events = messages('events', [bad, ...lines, bad]);
  const stored = await db.store({ ...batchOf([]), events });
  expect(stored.deadLetters.map(({ row }) => row.toString())).toEqual([bad, bad]);
  expect(await db.store({ ...batchOf([]), events: messages('events', lines) })).toMatchObject({ rows: ROWS });
  const found = 'SELECT count() AS events, uniqExact(uuid) AS uuids, min(length(properties)) AS least FROM events';
  const least = JSON.stringify({ text: 'x'.repeat(BYTES_OF_ROW) }).length;
  expect(await db.read(found)).toEqual([{ events: ROWS, uuids: ROWS, least }]);
});
