import { randomBytes } from 'node:crypto';
import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, test } from 'vitest';
import type { components } from '../../packages/client/src/query-schema.ts';
import { startPipeline } from '../kit/pipeline.ts';

type PipelineState = components['schemas']['Pipeline'];

test('without a writer its state is unknown, and what was accepted is still said', async () => {
  await using pipeline = await startPipeline({
    ...{ kafkaBrokers: inject('kafkaBrokers'), clickhouseUrl: inject('clickhouseUrl'), name: 'statewithout' },
  });
  const state = async () => (await pipeline.get<PipelineState>('/pipeline')).body;
  const submit = async (count: number) => {
    const events = Array.from({ length: count }, () => ({ event: 'e' }));
    expect((await pipeline.submit({ foreignUserGroupId: 'acme', events })).status).toBe(202);
  };
  await submit(7);
  await pipeline.settled(7);
  await pipeline.services.writer.stop();
  await submit(3);
  await eventually(state).toMatchObject({
    accepted: { events: 10 },
    ...{ lag: null, writers: null, clickHouse: null, erasures: null, backup: null },
    missing: ['A writer of WRITER_URL does not respond.'],
  });
  await pipeline.restart('writer');
  // It writes the keys file anew.
  await pipeline.addKey('other');
  await eventually(state).toMatchObject({
    lag: { messages: 0 },
    writers: {},
    clickHouse: {},
    keysFile: { valid: true },
    missing: [],
  });
});

test('with several ClickHouse servers it says which can be read, how far behind each is, and which one is read', async () => {
  const url = inject('clickhouseUrl');
  const database = `test_state_${randomBytes(4).toString('hex')}`;
  await using mirrors = await startPipeline({
    ...{ kafkaBrokers: inject('kafkaBrokers'), clickhouseUrl: url, name: 'stateofservers' },
    servers: { a1: { url, database: `${database}_a1` }, a2: { url, database: `${database}_a2` } },
  });
  await mirrors.submit({ foreignUserGroupId: 'g', events: [{ event: 'e' }] });
  await mirrors.settled(1);
  await eventually(async () => {
    const { servers, clickHouse, missing } = (await mirrors.get<PipelineState>('/pipeline')).body;
    const chosen = servers.filter((server) => server.chosen).length;
    return { servers, chosen, disks: clickHouse?.disks.map(({ name }) => name), missing };
  }).toEqual({
    servers: ['a1', 'a2'].map((name) => ({
      ...{ name, readable: true },
      behindSeconds: expect.any(Number),
      chosen: expect.any(Boolean),
    })),
    chosen: 1,
    // WRITER_URL is the writer of one of them.
    disks: ['a1/default'],
    missing: [],
  });
});
