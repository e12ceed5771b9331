import { Fenced } from '@sluice/storage/protocol/epoch';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { batchOf, createTestStore, eventRow, STAGINGS, type TestStore } from '../testing/store.ts';

describe.each(STAGINGS)('staging: %s', (staging) => {
  let db: TestStore;

  beforeAll(async () => {
    db = await createTestStore(inject('clickhouseUrl'), undefined, staging);
  });
  afterAll(() => db.close());

  function memberOf(generation: number, memberId: string) {
    return { generation, memberId, leaderId: 'leader' };
  }

  async function count(): Promise<number> {
    return (await db.read<{ rows: number }>('SELECT count() AS rows FROM events'))[0]?.rows ?? -1;
  }

  test('a writer that wakes up after its partitions went to others is fenced, and stores nothing', async () => {
    const [old, young] = [db.writer(), db.writer()];
    const oldEpoch = await old.ownership.begin(memberOf(3, 'old'), '');
    await old.store(batchOf([eventRow()]), oldEpoch);
    const youngEpoch = await young.ownership.begin(memberOf(4, 'young'), '');
    await expect(old.store(batchOf([eventRow()]), oldEpoch)).rejects.toThrow(Fenced);
    await young.store(batchOf([eventRow()]), youngEpoch);
    expect(await count()).toBe(2);
    await expect(old.ownership.begin(memberOf(3, 'old'), '')).rejects.toThrow(Fenced);
    const sibling = db.writer();
    await sibling.store(batchOf([eventRow()]), await sibling.ownership.begin(memberOf(4, 'sibling'), ''));
    expect(await count()).toBe(3);
  });
});
