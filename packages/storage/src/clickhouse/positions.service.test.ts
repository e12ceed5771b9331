import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, inject, test } from 'vitest';
import { Fenced } from '../protocol/epoch.ts';
import type { Halt } from '../protocol/log-gap.ts';
import { createTestClients, type TestClients } from '../testing/clients.ts';
import { Halts } from './halts.ts';
import { readPartitions } from './known-partitions.ts';
import { Ownership } from './ownership.ts';
import { type NewPosition, Positions } from './positions.ts';

const NAME = 't/3';

let db: TestClients;
let groupId: string;
let positions: Positions;

beforeAll(async () => {
  db = await createTestClients(inject('clickhouseUrl'));
});
afterAll(() => db.close());

beforeEach(() => {
  groupId = randomUUID();
  positions = positionsOf(groupId);
});

function positionsOf(group: string): Positions {
  const ownership = { queryIdPrefix: () => group };
  return new Positions({ client: db.writerClient, ownership, groupId: group, statementTimeoutMs: 240_000 });
}

function at(from: bigint, nextOffset: bigint): NewPosition {
  const last = nextOffset === 0n ? undefined : { fingerprint: `before ${nextOffset}`, leaderEpoch: 1 };
  return { topic: 't', partition: 3, from, nextOffset, last };
}

async function stored(): Promise<bigint | undefined> {
  return (await readPartitions(db.writerClient, groupId)).positions.get(NAME)?.nextOffset;
}

/** Lets the newest rows of the group look as if ClickHouse's clock had been years ahead when they were stored. */
async function storeAhead(table: 'writer_positions' | 'writer_halts', time: 'stored_at' | 'state_at'): Promise<void> {
  await db.client.command({
    query: `INSERT INTO ${table} SELECT * REPLACE (${time} + toIntervalYear(50) AS ${time}) FROM ${table} FINAL
      WHERE group_id = {groupId:String}`,
    query_params: { groupId },
  });
}

const EPOCH = { incarnation: 1, generation: 7, server: '' };

test('a writer whose epoch is over stores no position', async () => {
  await positions.store([at(0n, 10n)], EPOCH);
  const query = 'INSERT INTO writer_epochs (group_id, incarnation, generation) VALUES ({groupId:String}, 1, 8)';
  await db.client.command({ query, query_params: { groupId } });
  await expect(positions.store([at(10n, 20n)], EPOCH)).rejects.toThrow(new Fenced('a newer epoch owns the partitions'));
  expect(await stored()).toBe(10n);
  await positions.store([at(10n, 20n)], { ...EPOCH, generation: 8 });
  expect(await stored()).toBe(20n);
});

test('a position is stored only where ClickHouse has what comes before it', async () => {
  await positions.store([at(0n, 0n)], EPOCH);
  await positions.store([at(0n, 10n), { ...at(0n, 4n), partition: 4 }], EPOCH);
  // A batch that could not be committed is stored again.
  await positions.store([at(0n, 6n)], EPOCH);
  await positions.store([at(6n, 20n)], EPOCH);
  // As in a database that was restored from a backup, or emptied, while the writer was running.
  const lost = new Fenced('ClickHouse does not have the stored position any more');
  await expect(positions.store([at(21n, 30n)], EPOCH)).rejects.toThrow(lost);
  await expect(positions.store([{ ...at(1n, 30n), topic: 'other' }], EPOCH)).rejects.toThrow(lost);
  expect(await stored()).toBe(20n);
});

test('a request that arrives late does not set a position back', async () => {
  await positions.store([at(0n, 0n)], EPOCH);
  await positions.store([at(0n, 10n)], EPOCH);
  await positions.store([at(10n, 20n)], EPOCH);
  await positions.store([at(0n, 0n)], EPOCH);
  await positions.store([at(0n, 10n), { ...at(0n, 5n), partition: 4 }], EPOCH);
  expect(await stored()).toBe(20n);
  expect((await readPartitions(db.writerClient, groupId)).positions.get('t/4')?.nextOffset).toBe(5n);
});

test('of two statements that have found the same, the one with the higher offset counts, whichever ends last', async () => {
  const others = randomUUID();
  await positions.store([at(0n, 0n)], EPOCH);
  await positions.store([at(0n, 8n)], EPOCH);
  // What a request stores that arrives late, while that one runs.
  const late = positionsOf(others);
  for (let count = 1; count <= 10; count += 1) await late.store([at(0n, 0n)], EPOCH);
  await late.store([at(0n, 5n)], EPOCH);
  await db.client.command({
    query: `INSERT INTO writer_positions
      SELECT * REPLACE ({groupId:String} AS group_id) FROM writer_positions AS own WHERE own.group_id = {others:String}`,
    query_params: { groupId, others },
  });
  expect(await stored()).toBe(8n);
});

test('the newest position counts, also after the clock of ClickHouse was set back', async () => {
  await positions.store([at(0n, 10n)], EPOCH);
  await storeAhead('writer_positions', 'stored_at');
  await positions.store([at(10n, 20n)], EPOCH);
  expect(await stored()).toBe(20n);
  await storeAhead('writer_positions', 'stored_at');
  await new Halts(db.writerClient, groupId).resume('t', 3, 5n);
  expect(await stored()).toBe(5n);
});

test('a partition may be stored and not halted, halted and not stored, or both', async () => {
  const halt = (partition: number) =>
    ({
      ...{ topic: 't', partition, detail: 'why' },
      reason: 'messages are gone',
      firstOffset: 10n,
      lastOffset: null,
    }) as const;
  const halts = new Halts(db.writerClient, groupId);
  await positions.store([at(0n, 10n), { ...at(0n, 0n), partition: 4 }], EPOCH);
  await halts.record(halt(3));
  await halts.record(halt(5));
  const known = await readPartitions(db.writerClient, groupId);
  const { topic, nextOffset, last } = at(0n, 10n);
  expect(Object.fromEntries(known.positions)).toEqual({
    't/3': { topic, partition: 3, nextOffset, last },
    't/4': { topic, partition: 4, nextOffset: 0n, last: undefined },
  });
  const haltedAt = expect.any(String);
  expect(Object.fromEntries(known.halts)).toEqual({
    't/3': { ...halt(3), haltedAt },
    't/5': { ...halt(5), haltedAt },
  });
});

test('a partition is halted and resumed, also after the clock of ClickHouse was set back', async () => {
  const halts = new Halts(db.writerClient, groupId);
  const halt = {
    topic: 't',
    partition: 3,
    reason: 'by hand',
    detail: '',
    firstOffset: null,
    lastOffset: null,
  } as const;
  const isHalted = async () => (await readPartitions(db.writerClient, groupId)).halts.has(NAME);
  await halts.record(halt);
  await storeAhead('writer_halts', 'state_at');
  await halts.resume('t', 3);
  expect(await isHalted()).toBe(false);
  await storeAhead('writer_halts', 'state_at');
  await halts.record(halt);
  expect(await isHalted()).toBe(true);
});

test('what was wrong with a log stays known when the partition is resumed, and when it is halted by hand', async () => {
  const halts = new Halts(db.writerClient, groupId);
  const halt = { topic: groupId, partition: 3, detail: '', firstOffset: 8n, lastOffset: null } as const;
  const known = async () => {
    const query = 'SELECT reason, first_offset FROM log_gaps FINAL WHERE topic = {groupId:String} ORDER BY noticed_at';
    const result = await db.client.query({ query, query_params: { groupId }, format: 'JSONCompactEachRow' });
    return await result.json();
  };
  await halts.record({ ...halt, reason: 'the log was cut off' });
  await halts.resume(groupId, 3, 8n);
  const cutOff = ['the log was cut off', 8];
  expect(await known()).toEqual([cutOff]);
  await halts.record({ ...halt, reason: 'the log is another one', firstOffset: null });
  await halts.record({ ...halt, reason: 'by hand' });
  await halts.resume(groupId, 3);
  expect(await known()).toEqual([cutOff, ['the log is another one', null]]);
});

test('a writer whose epoch is over halts no partition of the new owner; an operator does', async () => {
  const halts = new Halts(db.writerClient, groupId);
  const halt: Halt = {
    topic: 't',
    partition: 7,
    reason: 'nothing is stored',
    detail: '',
    firstOffset: null,
    lastOffset: null,
  };
  const isHalted = async () => (await readPartitions(db.writerClient, groupId)).halts.has('t/7');
  const ownership = new Ownership({ client: db.writerClient, groupId, writerId: 'w', isMember: async () => true });
  const late = await ownership.begin({ generation: 5, memberId: 'm', leaderId: 'm' }, '');
  const owner = await ownership.begin({ generation: 6, memberId: 'm', leaderId: 'm' }, '');
  await expect(halts.record(halt, late)).rejects.toThrow(Fenced);
  expect(await isHalted()).toBe(false);
  await halts.record(halt, owner);
  expect(await isHalted()).toBe(true);
  await halts.resume('t', 7);
  await halts.record({ ...halt, reason: 'by hand' });
  expect(await isHalted()).toBe(true);
});
