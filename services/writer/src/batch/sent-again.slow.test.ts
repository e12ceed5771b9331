import { randomUUID } from 'node:crypto';
import type { ChangeRow, EventRow } from '@sluice/shared/rows';
import { PERSON_SQL, visitorOf } from '@sluice/shared/rows/deleted-person';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { batchOf, changeRow, createTestStore, eventRow, NOON, STAGINGS, type TestStore } from '../testing/store.ts';

describe.each(STAGINGS)('staging: %s', (staging) => {
  let db: TestStore;

  beforeAll(async () => {
    db = await createTestStore(inject('clickhouseUrl'), undefined, staging);
  });
  afterAll(() => db.close());

  const SECOND_US = 1_000_000;
  const WORKSPACE = 'sent again';

  /** In which batch the event, the deletion, and the event that was sent again are. */
  const ORDERS = [
    { first: 0, deletion: 0, second: 0 },
    { first: 0, deletion: 0, second: 1 },
    { first: 0, deletion: 1, second: 1 },
    { first: 0, deletion: 1, second: 2 },
    { first: 1, deletion: 0, second: 0 },
    { first: 1, deletion: 0, second: 1 },
    { first: 1, deletion: 0, second: 2 },
    { first: 2, deletion: 0, second: 1 },
  ];

  interface Found {
    readonly received_at: string;
    readonly timestamp: string;
  }

  /** Returns the rows of an event that no deletion hides. */
  async function visible(uuid: string): Promise<Found[]> {
    return await db.read<Found>(`
    SELECT received_at, timestamp FROM events
    LEFT JOIN (SELECT workspace_id AS workspace, user_id AS person, max(version) AS version FROM user_deletions GROUP BY ALL) AS deletions
      ON workspace = workspace_id AND person = ${PERSON_SQL}
    WHERE uuid = '${uuid}' AND toUnixTimestamp64Micro(received_at) > version`);
  }

  type Person = Pick<EventRow, 'user_id' | 'anonymous_id'>;

  /** For whom an event is sent again, after the user or visitor that it was sent for first was deleted. */
  const SECOND_PERSONS = {
    'the same user': (first: Person) => first,
    'the same visitor': (first: Person) => first,
    'another user': (first: Person) => ({ ...first, user_id: randomUUID() }),
    nobody: (): Person => ({}),
  };

  const KINDS: readonly (readonly [how: string, whom: keyof typeof SECOND_PERSONS, of: 'user' | 'visitor'])[] = [
    ['stamped on receipt', 'the same user', 'user'],
    ['with a timestamp of its own', 'the same user', 'user'],
    ['stamped on receipt', 'another user', 'user'],
    ['with a timestamp of its own', 'nobody', 'user'],
    ['stamped on receipt', 'the same visitor', 'visitor'],
    ['with a timestamp of its own', 'another user', 'visitor'],
  ];

  /** Every kind in every order, each with an event and a deletion of its own. */
  const CASES = KINDS.flatMap(([how, whom, of]) =>
    ORDERS.map((order) => {
      const [uuid, id] = [randomUUID(), randomUUID()];
      const first: Person = of === 'user' ? { user_id: id } : { anonymous_id: id };
      const second = SECOND_PERSONS[whom](first);
      const stamped = how === 'stamped on receipt';
      const sentAt = (seconds: number): EventRow =>
        eventRow({
          ...{ workspace_id: WORKSPACE, uuid, ...(seconds > 50 ? second : first) },
          received_at: NOON * 1_000 + seconds * SECOND_US,
          timestamp: NOON + (stamped ? seconds * 1_000 : 0),
          ...(stamped && { stamped: 1 }),
        });
      const version = NOON * 1_000 + 50 * SECOND_US;
      const person = of === 'user' ? id : visitorOf(id);
      const deletion = changeRow({ workspace_id: WORKSPACE, id: person, operation: 'delete', version });
      return { how, whom, of, ...order, order, uuid, sentAt, deletion };
    }),
  );

  describe('an event that is sent again after the deletion', () => {
    const once = [{ received_at: '2026-03-01 12:01:40.000000' }];
    /** What is visible of each case after its three batches, and after more repeats. */
    const found: Map<string, Found[]>[] = [];
    const visibleNow = async () =>
      new Map(await Promise.all(CASES.map(async ({ uuid }) => [uuid, await visible(uuid)] as const)));

    beforeAll(async () => {
      for (const batch of [0, 1, 2]) {
        const events = CASES.flatMap(({ order, sentAt }) => [
          ...(order.first === batch ? [sentAt(0)] : []),
          ...(order.second === batch ? [sentAt(100)] : []),
        ]);
        const deletions = CASES.filter(({ order }) => order.deletion === batch).map(({ deletion }) => deletion);
        await db.store(batchOf(events, deletions));
      }
      found.push(await visibleNow());
      // Each event is stored now, so neither batch adds anything.
      await db.store(batchOf(CASES.flatMap(({ sentAt }) => [sentAt(200), sentAt(0), sentAt(100)])));
      await db.store(batchOf(CASES.map(({ sentAt }) => sentAt(150))));
      found.push(await visibleNow());
    });

    test.each(CASES)('$how, for $whom ($of): is visible once: batches $first, $deletion and $second', ({ uuid }) => {
      expect(found.map((visibleThen) => visibleThen.get(uuid))).toMatchObject([once, once]);
    });
  });

  test('two repeats of one batch after the deletion are one event', async () => {
    const [uuid, user_id] = [randomUUID(), randomUUID()];
    const sentAt = (seconds: number) =>
      eventRow({ workspace_id: WORKSPACE, uuid, user_id, timestamp: NOON + seconds * 1_000, stamped: 1 });
    const version = NOON * 1_000 + 50 * SECOND_US;
    const deletion = changeRow({ workspace_id: WORKSPACE, id: user_id, operation: 'delete', version });
    await db.store(batchOf([sentAt(0), sentAt(100), sentAt(120)], [deletion]));
    expect(await visible(uuid)).toMatchObject([{ timestamp: '2026-03-01 12:01:40.000' }]);
  });

  test('rows that are left out because of a deletion are counted', async () => {
    const user_id = randomUUID();
    const id = user_id;
    const received = (received_at: number) => ({ workspace_id: WORKSPACE, user_id, received_at });
    const version = NOON * 1_000;
    const event = eventRow(received(version));
    const change = (row: Partial<ChangeRow>) =>
      changeRow({ workspace_id: WORKSPACE, id, version, operation: 'seen', ...row });
    const deletion = change({ operation: 'delete' });
    expect(await db.store(batchOf([event], [change({})]))).toMatchObject({ rows: 2, userDeleted: 0 });
    expect(await db.store(batchOf([event], [deletion]))).toMatchObject({ rows: 2, userDeleted: 1 });
    const late = [
      change({ operation: 'set', property: 'a', value: '1' }),
      change({}),
      change({ version: version + 1 }),
    ];
    const events = [event, eventRow(received(version + 1)), eventRow({ workspace_id: WORKSPACE })];
    expect(await db.store(batchOf(events, late))).toMatchObject({ rows: 6, userDeleted: 3 });
    expect(await db.store(batchOf([], late))).toMatchObject({ rows: 3, userDeleted: 2 });
  });

  test('events of a deleted visitor that arrive late are dropped and counted, and show that their organization exists', async () => {
    const [visitor, organization] = [randomUUID(), randomUUID()];
    const version = NOON * 1_000;
    const event = (row: Partial<EventRow>) =>
      eventRow({
        workspace_id: WORKSPACE,
        anonymous_id: visitor,
        group_id: organization,
        received_at: version,
        ...row,
      });
    const deletion = changeRow({ workspace_id: WORKSPACE, id: visitorOf(visitor), operation: 'delete', version });
    const others = [
      event({ user_id: 'of a user' }),
      event({ anonymous_id: 'other' }),
      event({ received_at: version + 1 }),
    ];
    expect(await db.store(batchOf([event({}), ...others], [deletion]))).toMatchObject({ rows: 5, userDeleted: 1 });
    expect(await db.store(batchOf([event({})]))).toMatchObject({ rows: 1, userDeleted: 1 });
    const stored = `SELECT toString(uuid) AS uuid FROM events WHERE group_id = '${organization}' ORDER BY events.uuid`;
    expect((await db.read<{ uuid: string }>(stored)).map(({ uuid }) => uuid).sort()).toEqual(
      others.map(({ uuid }) => uuid).sort(),
    );
    expect(
      await db.read(`SELECT DISTINCT kind FROM entities WHERE id = '${organization}' AND kind = 'organization'`),
    ).toHaveLength(1);
  });

  test('rows that arrive after the deletion of their user leave no trace of the user', async () => {
    const user_id = randomUUID();
    const version = NOON * 1_000;
    const change = (operation: ChangeRow['operation']) =>
      changeRow({ workspace_id: WORKSPACE, id: user_id, operation, version });
    await db.store(batchOf([], [change('delete')]));
    await db.store(batchOf([eventRow({ workspace_id: WORKSPACE, user_id, group_id: user_id })], [change('seen')]));
    const rows = await Promise.all(
      [
        `SELECT 1 FROM events WHERE user_id = '${user_id}'`,
        `SELECT 1 FROM entities WHERE kind = 'user' AND id = '${user_id}'`,
        `SELECT 1 FROM user_sightings WHERE user_id = '${user_id}'`,
      ].map((query) => db.read(query)),
    );
    expect(rows).toEqual([[], [], []]);
  });

  test('the events of a deleted user show that their organization exists, whichever is stored first', async () => {
    const deletion = changeRow({ id: 'gone', operation: 'delete', version: NOON * 1_000 + 1, workspace_id: 'seen' });
    const event = (group_id: string) => eventRow({ workspace_id: 'seen', user_id: 'gone', group_id });
    await db.store(batchOf([event('before')]));
    await db.store(batchOf([event('with')], [deletion]));
    await db.store(batchOf([event('after')]));
    const ids = await db.read<{ id: string }>(
      "SELECT DISTINCT id FROM entities WHERE workspace_id = 'seen' AND kind = 'organization' ORDER BY id",
    );
    expect(ids.map(({ id }) => id)).toEqual(['after', 'before', 'with']);
  });
});
