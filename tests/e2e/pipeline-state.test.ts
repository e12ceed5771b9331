import { eventually } from '@sluice/shared/testing/eventually';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { type Pipeline, startPipeline } from '../support/pipeline.ts';

interface PipelineState {
  readonly accepted: { readonly events: number; readonly rejectedCalls: number } | null;
  readonly lag: { readonly messages: number; readonly seconds: number } | null;
  readonly missing: readonly string[];
}

let pipeline: Pipeline;

beforeAll(async () => {
  pipeline = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: inject('clickhouseUrl'),
    name: 'state',
  });
});
afterAll(() => pipeline?.stop());

async function state(): Promise<PipelineState> {
  return (await pipeline.get<PipelineState>('/pipeline')).body;
}

async function submit(count: number): Promise<void> {
  const events = Array.from({ length: count }, () => ({ event: 'e' }));
  expect((await pipeline.submit({ foreignUserGroupId: 'acme', events })).status).toBe(202);
}

test('GET /pipeline says what ingest-api has accepted, and that the writer has stored it', async () => {
  await submit(7);
  await pipeline.settled(7);
  await eventually(state).toMatchObject({ accepted: { events: 7 }, lag: { messages: 0, seconds: 0 }, missing: [] });
});

test('without a writer the lag is unknown, and what was accepted is still said', async () => {
  await pipeline.services.writer.stop();
  await submit(3);
  await eventually(state).toMatchObject({
    accepted: { events: 10 },
    lag: null,
    missing: ['The writer of WRITER_URL does not respond.'],
  });
  await pipeline.restart('writer');
  await pipeline.settled(10);
  await eventually(state).toMatchObject({ lag: { messages: 0 }, missing: [] });
});
