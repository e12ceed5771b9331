import { writeFile } from 'node:fs/promises';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { components } from '../../packages/client/src/query-schema.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';

type PipelineState = components['schemas']['Pipeline'];

let pipeline: Pipeline;

beforeAll(async () => {
  pipeline = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: inject('clickhouseUrl'),
    name: 'state',
    // A deleted user with an event waits to be erased.
    envOf: { writer: { ERASURE_GATHER_MS: '3600000' } },
  });
});
afterAll(() => pipeline?.stop());

async function state(): Promise<PipelineState> {
  return (await pipeline.get<PipelineState>('/pipeline')).body;
}

async function submit(count: number): Promise<void> {
  const events = Array.from({ length: count }, () => ({ event: 'e' }));
  const submission = { foreignUserGroupId: 'acme', foreignUserId: 'u', events };
  expect((await pipeline.submit(submission)).status).toBe(202);
}

test('GET /pipeline says what is accepted, refused, stored and pending, and how ClickHouse and the keys files are', async () => {
  const before = Date.now();
  await submit(7);
  await pipeline.settled(7);
  expect((await pipeline.submit({}, { key: 'unknown' })).status).toBe(401);
  expect((await pipeline.deleteUser('u')).status).toBe(202);
  await pipeline.drained();
  await writeFile(pipeline.keysFile, '{');
  let found = await state();
  const read = async () => {
    found = await state();
    return found;
  };
  await eventually(read).toMatchObject({
    accepted: { events: 7 },
    lag: { messages: 0, seconds: 0, headroomSeconds: null },
    writers: { batchFailures: 0, deadLetters: 0, deadLetterAlarm: false, haltedPartitions: 0 },
    erasures: { pendingUsers: 1 },
    backup: { ageSeconds: expect.any(Number) },
    keysFile: { valid: false, ageSeconds: expect.any(Number) },
    servers: [],
    missing: [],
  });
  const { accepted, writers, clickHouse, erasures } = found;
  expect(accepted?.refused).toContainEqual({ code: 'unauthorized', requests: 1 });
  expect(Date.parse(writers?.lastStoredAt ?? '')).toBeGreaterThanOrEqual(before);
  expect(clickHouse).toEqual({
    disks: [{ name: 'default', freeBytes: expect.any(Number), totalBytes: expect.any(Number) }],
    fullestPartition: { table: expect.any(String), parts: expect.any(Number), partsLimit: expect.any(Number) },
    pendingMutations: 0,
  });
  expect(clickHouse?.fullestPartition?.parts).toBeGreaterThan(0);
  expect(erasures?.deadlineSeconds).toBeGreaterThan(3_600);
  expect(erasures?.oldestSeconds).toBeLessThan(3_600);
});
