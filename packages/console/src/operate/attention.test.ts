import { expect, test } from 'vitest';
import type { Pipeline } from '../base/base.ts';
import { attentionOf } from './attention.ts';

const WELL: Pipeline = {
  accepted: { events: 1, rejectedCalls: 0, clients: [], refused: [] },
  lag: { messages: 1, seconds: 0.5, headroomSeconds: 604_800 },
  writers: {
    ...{ storedMessages: 9, batchFailures: 3, deadLetters: 1, deadLetterAlarm: false },
    ...{ haltedPartitions: 0, lastStoredAt: null },
  },
  clickHouse: {
    disks: [{ name: 'default', freeBytes: 100, totalBytes: 1_000 }],
    fullestPartition: { table: 'events', parts: 1_500, partsLimit: 3_000 },
    pendingMutations: 1,
  },
  erasures: { pendingUsers: 1, oldestSeconds: 60, deadlineSeconds: 60 },
  backup: null,
  keysFile: { valid: true, ageSeconds: 0 },
  servers: [
    { name: 'a1', readable: true, behindSeconds: 0.5, chosen: true },
    { name: 'a2', readable: true, behindSeconds: 20, chosen: false },
  ],
  missing: [],
  deadLetters: { waiting: 1, lastDay: 1, rejectedLastDay: 0, newestAt: null, countedFrom: '2026-01-30T12:00:00.000Z' },
};
const { lag, writers, clickHouse, erasures, keysFile } = WELL;
const UNKNOWN: Pipeline = {
  ...WELL,
  ...{ accepted: null, lag: null, writers: null, clickHouse: null, erasures: null, keysFile: null },
};

test('nothing needs attention while everything is within its bounds, and nothing can be said of what is not known', () => {
  expect(attentionOf(WELL, WELL)).toEqual([]);
  expect(attentionOf(WELL, undefined)).toEqual([]);
  expect(attentionOf(WELL, UNKNOWN)).toEqual([]);
  expect(attentionOf(UNKNOWN, WELL)).toEqual([]);
});

test.each<[Partial<Pipeline>, string]>([
  [{ lag: lag && { ...lag, seconds: 180 } }, 'Rows have been waiting in Kafka for 3 minutes.'],
  [{ lag: lag && { ...lag, headroomSeconds: 7_200 } }, 'Kafka may delete rows that are not stored in 2 hours.'],
  [{ writers: writers && { ...writers, haltedPartitions: 1 } }, '1 partition is halted until resumed.'],
  [{ writers: writers && { ...writers, haltedPartitions: 2 } }, '2 partitions are halted until resumed.'],
  [
    { writers: writers && { ...writers, batchFailures: 4 } },
    'Batches fail and are retried; the log of the writer has the reason.',
  ],
  [
    { writers: writers && { ...writers, deadLetterAlarm: true } },
    'Many rows could not be stored in the last minutes; they are dead letters.',
  ],
  [
    { clickHouse: clickHouse && { ...clickHouse, disks: [{ name: 'cold', freeBytes: 99, totalBytes: 1_000 }] } },
    'The disk cold of ClickHouse has 99 bytes left of 1 kB.',
  ],
  [
    {
      clickHouse: clickHouse && {
        ...clickHouse,
        fullestPartition: { table: 'events', parts: 1_501, partsLimit: 3_000 },
      },
    },
    'A partition of events has 1,501 parts; with 3,000 inserts are refused.',
  ],
  [
    { erasures: erasures && { ...erasures, oldestSeconds: 864_000 } },
    'A deleted user has not been erased for 10 days.',
  ],
  [
    { keysFile: keysFile && { ...keysFile, valid: false } },
    'The keys file cannot be used; the last valid keys stay in force.',
  ],
  [
    { servers: [{ name: 'a2', readable: false, behindSeconds: null, chosen: false }] },
    'The ClickHouse server a2 cannot be read; the log of query-api has the reason.',
  ],
  [
    { servers: [{ name: 'a2', readable: true, behindSeconds: 420, chosen: false }] },
    'The ClickHouse server a2 is 7 minutes behind Kafka.',
  ],
  [
    { deadLetters: { ...WELL.deadLetters, rejectedLastDay: 1_200 } },
    '1,200 calls were rejected in the last 24 hours; few clients say so.',
  ],
])('%j needs attention', (change, sentence) => {
  const found = attentionOf({ ...WELL, ...change }, WELL);
  expect(found).toMatchObject([{ found: sentence, remedy: expect.stringMatching(/^[A-Z].*\.$/s) }]);
});

test('what is lost for ever comes first, with the command that keeps it', () => {
  const found = attentionOf({ ...WELL, lag: { messages: 9, seconds: 180, headroomSeconds: 60 } }, WELL);
  expect(found.map(({ command }) => command)).toEqual([
    expect.stringContaining('retention.ms='),
    'sluice writer status',
  ]);
});
