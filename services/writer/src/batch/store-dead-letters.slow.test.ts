import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { batchOf, createTestStore, eventRow, messages, NOON, STAGINGS, type TestStore } from '../testing/store.ts';

describe.each(STAGINGS)('staging: %s', (staging) => {
  let db: TestStore;

  beforeAll(async () => {
    db = await createTestStore(inject('clickhouseUrl'), undefined, staging);
  });
  afterAll(() => db.close());

  test('masses of bad rows are isolated in few statements, and the good ones among them are stored', async () => {
    const bad = (index: number) =>
      [
        'no json',
        JSON.stringify({ ...eventRow(), timestamp: `yesterday ${index}` }),
        JSON.stringify({ ...eventRow(), event: '' }),
        JSON.stringify({ ...eventRow(), colour: index }),
      ][index % 4] as string;
    const lines = Array.from({ length: 50_000 }, (_, index) =>
      index % 5 === 4
        ? JSON.stringify(eventRow({ workspace_id: 'masses', timestamp: NOON + index }))
        : bad(index - Math.floor(index / 5)),
    );
    let statements = 0;
    const count = () => {
      statements += 1;
    };
    subscribe('http.client.request.start', count);
    onTestFinished(() => void unsubscribe('http.client.request.start', count));
    const { rows, deadLetters } = await db.store({ ...batchOf([]), events: messages('events', lines) });
    // ClickHouse is asked for the reasons of 100 rows, with two statements each.
    expect(statements).toBeGreaterThan(0);
    expect(statements).toBeLessThan(300);
    expect([rows, deadLetters.length]).toEqual([10_000, 40_000]);
    expect(await db.read("SELECT count() AS rows FROM events WHERE workspace_id = 'masses'")).toEqual([
      { rows: 10_000 },
    ]);
    for (const { reason } of deadLetters) expect(reason).toMatch(/^[A-Z_]+: /);
  });

  test('a batch of nothing but bad rows becomes dead letters', async () => {
    const { rows, deadLetters } = await db.store({
      ...batchOf([]),
      events: messages('events', Array(20_000).fill('{"poison":"all the way"}')),
    });
    expect([rows, deadLetters.length]).toEqual([0, 20_000]);
  });
});
