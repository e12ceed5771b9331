import { writeFile } from 'node:fs/promises';
import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import type { components } from '../../packages/client/src/query-schema.ts';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';

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
  const events = Array.from({ length: count }, () => ({ event: 'e', userId: 'u' }));
  expect((await pipeline.submit({ foreignUserGroupId: 'acme', events })).status).toBe(202);
}

test('GET /pipeline says what ingest-api has accepted, and that the writer has stored it', async () => {
  const before = Date.now();
  await submit(7);
  await pipeline.settled(7);
  await eventually(state).toMatchObject({
    accepted: { events: 7 },
    lag: { messages: 0, seconds: 0, headroomSeconds: null },
    writers: { batchFailures: 0, deadLetters: 0, deadLetterAlarm: false, haltedPartitions: 0 },
    keysFile: { valid: true },
    missing: [],
  });
  const { accepted, writers, clickHouse } = await state();
  expect(Date.parse(writers?.lastStoredAt ?? '')).toBeGreaterThanOrEqual(before);
  expect(clickHouse).toEqual({
    disks: [{ name: 'default', freeBytes: expect.any(Number), totalBytes: expect.any(Number) }],
    fullestPartition: { table: expect.any(String), parts: expect.any(Number), partsLimit: expect.any(Number) },
    pendingMutations: 0,
  });
  expect(clickHouse?.fullestPartition?.parts).toBeGreaterThan(0);
  // Before a service is ready its requests get 503.
  expect(accepted?.refused.filter(({ code }) => code === 'unauthorized')).toEqual([]);
});

test('GET /pipeline says how many deleted users are not erased yet', async () => {
  expect(await state()).toMatchObject({ erasures: { pendingUsers: 0, oldestSeconds: 0 } });
  expect((await pipeline.deleteUser('u')).status).toBe(202);
  await eventually(state).toMatchObject({ erasures: { pendingUsers: 1, oldestSeconds: expect.any(Number) } });
  const { erasures } = await state();
  expect(erasures?.deadlineSeconds).toBeGreaterThan(3_600);
  expect(erasures?.oldestSeconds).toBeLessThan(3_600);
});

test('GET /pipeline says that a keys file cannot be used', async () => {
  await writeFile(pipeline.keysFile, '{');
  await eventually(state).toMatchObject({ keysFile: { valid: false, ageSeconds: expect.any(Number) } });
  // The last valid keys stay in force.
  await submit(1);
  await pipeline.addKey('other');
  await eventually(state).toMatchObject({ keysFile: { valid: true } });
});

test('without a writer its state is unknown, and what was accepted is still said', async () => {
  await pipeline.services.writer.stop();
  await submit(3);
  await eventually(state).toMatchObject({
    accepted: { events: 11 },
    ...{ lag: null, writers: null, clickHouse: null, erasures: null, backup: null },
    missing: ['A writer of WRITER_URL does not respond.'],
  });
  await pipeline.restart('writer');
  await eventually(state).toMatchObject({ lag: { messages: 0 }, writers: {}, clickHouse: {}, missing: [] });
});
