import type { ChangeRow, EventRow } from '@sluice/shared/rows';
import { HOW_TO_REPEAT, SEED } from '@sluice/shared/testing/fast-check';
import { CarriedTables } from '@sluice/storage/clickhouse/carried-tables';
import { ClickHouseSession } from '@sluice/storage/clickhouse/clickhouse-session';
import { formSender } from '@sluice/storage/clickhouse/form-request';
import type { RowBatch, RowMessage } from '@sluice/storage/protocol/row-batch';
import { expect, inject, test } from 'vitest';
import { eraseRows } from '../erasure/deleted-rows.ts';
import { STATEMENTS as ERASURE_STATEMENTS } from '../erasure/statements.ts';
import { createTestStore, eventRow, NOON, STAGINGS, type TestStore } from '../testing/store.ts';
import { STATEMENTS } from './statements.ts';

const MINUTE_MS = 60_000;
const MESSAGES = 30;

/** A generator of numbers that one seed decides. @see https://en.wikipedia.org/wiki/Lehmer_random_number_generator */
function numbersBelow(seed: number): (limit: number) => number {
  let state = (seed % 2_147_483_646) + 1;
  return (limit) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % limit;
  };
}

function uuidOf(number: number): string {
  return `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
}

/**
 * Returns the messages of one partition: few uuids, stamped events within and beyond ten minutes and at the end of a month,
 * events with times of their own, equal keys of several users, deletions of users whose events are sent once, lines that
 * are no rows.
 */
function generateLog(seed: number): RowMessage[] {
  const below = numbersBelow(seed);
  const times = [NOON, Date.UTC(2026, 2, 31, 23, 55)];
  let serial = 0;
  const event = (): EventRow => {
    serial += 1;
    const timestamp = (times[below(2)] as number) + below(40) * MINUTE_MS;
    const isStamped = below(2) === 0;
    return {
      ...{ workspace_id: `w${below(2)}`, timestamp, uuid: uuidOf(below(6)), event: `e${serial}` },
      ...{ user_id: `u${below(3)}`, group_id: `g${below(3)}` },
      received_at: (isStamped ? timestamp : NOON + 10 * serial) * 1_000 + below(1_000),
      ...(isStamped && { stamped: 1 as const }),
    };
  };
  const ofDeleted = (): EventRow => {
    serial += 1;
    const received_at = (NOON + serial) * 1_000;
    const user_id = `deleted ${below(4)}`;
    return { ...event(), uuid: uuidOf(1_000 + serial), user_id, received_at, timestamp: NOON + serial };
  };
  const change = (): ChangeRow => {
    serial += 1;
    const common = { workspace_id: `w${below(2)}`, kind: 'user', change_id: uuidOf(serial) } as const;
    const version = (NOON + serial) * 1_000;
    if (below(3) === 0) return { ...common, id: `deleted ${below(4)}`, operation: 'delete', version };
    if (below(3) === 0) return { ...common, id: `deleted ${below(4)}`, operation: 'seen', version };
    if (below(2) === 0) return { ...common, id: `u${below(3)}`, operation: 'seen', version, group_id: `g${below(2)}` };
    return { ...common, id: `u${below(3)}`, operation: 'set', version, property: 'p', value: String(serial) };
  };
  const lineOf = (row: object): string => {
    const line = JSON.stringify(row);
    const broken = [`[${line}]`, `${line};`, line.slice(1), JSON.stringify({ ...row, unknown: 1 })];
    return below(40) === 0 ? (broken[below(4)] as string) : line;
  };
  return Array.from({ length: MESSAGES }, (_, offset) => {
    const kind = below(5) === 0 ? 'changes' : 'events';
    const row = () => (kind === 'changes' ? change() : below(6) === 0 ? ofDeleted() : event());
    const value = Buffer.from(Array.from({ length: 1 + below(8) }, () => `${lineOf(row())}\n`).join(''));
    return { kind, topic: 't', partition: 1, offset: String(offset), value };
  });
}

function batch(messages: readonly RowMessage[]): RowBatch {
  const ofKind = (kind: RowMessage['kind']) => messages.filter((message) => message.kind === kind);
  return { events: ofKind('events'), changes: ofKind('changes'), deadLetters: [] };
}

/** What is stored of each table that follows from the log alone, folded where rows of a key are merged at any time. */
const STORED = {
  events: 'SELECT * FROM events ORDER BY ALL',
  // The row of a user names the deletion after which it begins, if its writer knew it. When users who came back were seen
  // together with an organization is computed while that may have been before their deletion.
  entities: `SELECT workspace_id, kind, id, if(kind = 'user', '', other_id) AS other, max(version) AS version,
      if(kind != 'user' AND concat(id, other) LIKE '%deleted%', NULL, (min(first_seen_at), max(last_seen_at))) AS seen
    FROM entities GROUP BY workspace_id, kind, id, other ORDER BY ALL`,
  properties:
    'SELECT workspace_id, kind, id, property, max(register) AS r FROM entity_properties GROUP BY ALL ORDER BY ALL',
  sightings: 'SELECT DISTINCT * FROM user_sightings ORDER BY ALL',
  deletions: 'SELECT * FROM user_deletions FINAL ORDER BY ALL',
  deadLetters: 'SELECT id, row, topic, partition, offset, line FROM dead_letters FINAL ORDER BY ALL',
};

async function stored(db: TestStore): Promise<Record<string, readonly unknown[]>> {
  const read = async ([name, query]: [string, string]) => [name, await db.read(query)] as const;
  return Object.fromEntries(await Promise.all(Object.entries(STORED).map(read)));
}

/** What a deletion hides depends on when it was read; nothing that is left after the erasure does. */
async function erase(db: TestStore): Promise<void> {
  await db.settle();
  const session = new ClickHouseSession(db.writerClient, 'erasure', 60_000);
  const from = { delayMs: 0, usersMax: 1_000, afterMs: 0, afterWorkspace: '', afterUser: '' };
  await eraseRows(session, await session.read(ERASURE_STATEMENTS['find-due-erasures'], from), () => undefined);
  await session.close();
}

test('what is stored is the same wherever batches are cut, and whatever attempts failed', {
  timeout: 240_000,
}, async () => {
  const log = generateLog(SEED);
  const below = numbersBelow(SEED + 1);
  const whole = await createTestStore(inject('clickhouseUrl'));
  const single = await createTestStore(inject('clickhouseUrl'));
  const cut = await createTestStore(inject('clickhouseUrl'));
  const carried = await createTestStore(inject('clickhouseUrl'), undefined, 'carried');
  try {
    await whole.store(batch(log));
    for (let start = 0; start < log.length; start += 7) await carried.store(batch(log.slice(start, start + 7)));
    for (const message of log) await single.store(batch([message]));
    for (let start = 0; start < log.length; ) {
      const end = start + 1 + below(12);
      // An attempt at a longer batch, of which one month alone was stored.
      const longer = batch(log.slice(start, end + below(12)));
      if (below(2) === 0) {
        await cut.store(longer);
        await cut.client.command({ query: `ALTER TABLE events DROP PARTITION ${below(2) === 0 ? 202603 : 202604}` });
        start = 0;
        await cut.store(batch(log.slice(0, end)));
      }
      await cut.store(batch(log.slice(start, end)));
      start = end;
    }
    for (const db of [whole, single, cut, carried]) await erase(db);
    const expected = await stored(single);
    expect(expected['events']?.length).toBeGreaterThan(20);
    expect(expected['deadLetters']?.length).toBeGreaterThan(0);
    expect(await stored(whole), HOW_TO_REPEAT).toEqual(expected);
    expect(await stored(cut), HOW_TO_REPEAT).toEqual(expected);
    expect(await stored(carried), HOW_TO_REPEAT).toEqual(expected);
  } finally {
    await Promise.all([whole, single, cut, carried].map((db) => db.close()));
  }
});

/** Returns the address of a ClickHouse whose blocks are small, and which reads many of them at once. */
function withSmallBlocks(address: string): string {
  const url = new URL(address);
  for (const name of ['max_insert_block_size', 'min_insert_block_size_rows', 'max_block_size']) {
    url.searchParams.set(`clickhouse_setting_${name}`, '1000');
  }
  url.searchParams.set('clickhouse_setting_max_threads', '8');
  return String(url);
}

test.each(STAGINGS)('staged events keep their order when others are dropped (staging: %s)', async (staging) => {
  const db = await createTestStore(withSmallBlocks(inject('clickhouseUrl')), undefined, staging);
  const session =
    staging === 'session'
      ? new ClickHouseSession(db.writerClient, 'order', 60_000)
      : new CarriedTables(formSender(db.writerClient), 'order', 60_000);
  try {
    await session.run(STATEMENTS['stage-events']);
    const lines = Array.from({ length: 100_000 }, (_, serial) => JSON.stringify(eventRow({ event: `e${serial}` })));
    await session.load(STATEMENTS['load-events'], [Buffer.from(lines.join('\n'))]);
    for (const name of ['stage-changes', 'find-deletions', 'find-repeats', 'stage-repeats'] as const) {
      await session.run(STATEMENTS[name]);
    }
    const sql = `SELECT countIf(place != toUInt32(substring(event, 2))) AS displaced
      FROM (SELECT rowNumberInAllBlocks() AS place, event FROM staged_events) SETTINGS max_threads = 1`;
    // In several threads, some of these would exchange blocks.
    for (let time = 0; time < 20; time += 1) {
      for (const name of ['drop-deleted-events', 'drop-stored-repeats', 'drop-repeats'] as const) {
        await session.run(STATEMENTS[name]);
      }
      expect(await session.read({ name: 'displaced', sql })).toEqual([{ displaced: 0 }]);
    }
  } finally {
    await session.close();
    await db.close();
  }
});

test.each(STAGINGS)(
  'of a batch of many blocks the first of equal keys stays, also after others of it were dropped (staging: %s)',
  async (staging) => {
    const rows = 150_000;
    const db = await createTestStore(withSmallBlocks(inject('clickhouseUrl')), undefined, staging);
    try {
      // Each uuid is in three blocks one after the other.
      const eventAt = (serial: number): EventRow => ({
        ...{ workspace_id: 'w', timestamp: NOON, event: `e${serial}` },
        uuid: uuidOf(1_000 * Math.floor(serial / 3_000) + (serial % 1_000)),
        ...{ received_at: (NOON - serial) * 1_000, user_id: serial % 1_000 === 7 ? 'gone' : '' },
      });
      const lines = Array.from({ length: rows }, (_, serial) => `${JSON.stringify(eventAt(serial))}\n`);
      const message: RowMessage = {
        ...{ kind: 'events', topic: 't', partition: 1, offset: '0' },
        value: Buffer.from(lines.join('')),
      };
      // It is stored already, so others are dropped as repeats of stored events first.
      await db.store(batch([{ ...message, value: Buffer.from(lines[0] ?? '') }]));
      const deletion = { workspace_id: 'w', kind: 'user', id: 'gone', operation: 'delete', change_id: uuidOf(1) };
      const gone = `${JSON.stringify({ ...deletion, version: NOON * 2_000 })}\n`;
      const deletions: RowMessage = { ...message, kind: 'changes', value: Buffer.from(gone) };
      await db.store({ events: [message], changes: [deletions], deadLetters: [] });
      const found = await db.read<{ events: number; later: number }>(
        `SELECT count() AS events, countIf(toUInt32(substring(event, 2)) % 3000 >= 1000) AS later
       FROM events WHERE user_id = ''`,
      );
      // Where the first one was of the deleted user, so were the others.
      expect(found).toEqual([{ events: 50_000 - 50, later: 0 }]);
    } finally {
      await db.close();
    }
  },
);
