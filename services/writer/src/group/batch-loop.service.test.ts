import { randomUUID } from 'node:crypto';
import { createLogger } from '@sluice/shared/base/log';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { messageHeaders } from '@sluice/shared/rows';
import { readPartitions } from '@sluice/storage/clickhouse/known-partitions';
import { Positions } from '@sluice/storage/clickhouse/positions';
import type { Assignment } from '@sluice/storage/protocol/assignment';
import { Fenced } from '@sluice/storage/protocol/epoch';
import type { SourceMessage } from '@sluice/storage/protocol/row-batch';
import { createTestAssignment } from '@sluice/storage/testing/assignment';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { StagedStore } from '../batch/staged-batch.ts';
import { STATEMENTS } from '../batch/statements.ts';
import { createWriterMetrics } from '../metrics.ts';
import { createTestStore, eventRow, type TestStore } from '../testing/store.ts';
import { BatchLoop, BatchSize } from './batch-loop.ts';
import { DeadLetterAlarm } from './dead-letter-alarm.ts';

let db: TestStore;

beforeAll(async () => {
  db = await createTestStore(inject('clickhouseUrl'));
});
afterAll(() => db.close());

const groupId = 'batch-loop';

function message(workspace: string, offset: number): SourceMessage {
  const value = Buffer.from(`${JSON.stringify(eventRow({ workspace_id: workspace }))}\n`);
  const headers = messageHeaders('events');
  return {
    topic: 't',
    partition: 0,
    message: { key: null, value, headers, timestamp: '0', attributes: 0, offset: String(offset) },
  };
}

function createLoop(client: ClickHouseClient = db.writerClient) {
  const { ownership } = db.writer();
  const options = { client, ownership, groupId, statementTimeoutMs: 240_000 };
  return new BatchLoop({
    store: new StagedStore(options),
    positions: new Positions(options),
    groupId,
    bytesMax: 1_000_000,
    pace: { stored: () => undefined },
    alarm: new DeadLetterAlarm(),
    metrics: createWriterMetrics(new Registry()),
    logger: createLogger('test', 'silent'),
  });
}

function assigned(generation: number, server = ''): Assignment {
  const assignment = createTestAssignment(generation);
  assignment.epoch = { incarnation: 1, generation, server };
  return assignment;
}

async function count(workspace: string): Promise<number> {
  const query = `SELECT count() AS rows FROM events WHERE workspace_id = '${workspace}'`;
  return (await db.read<{ rows: number }>(query))[0]?.rows ?? -1;
}

test('a batch is stored, and then the position of its partition', async () => {
  const [first, second] = [message('stored', 0), message('stored', 1)];
  await createLoop().add([first, second], assigned(3));
  expect(await count('stored')).toBe(2);
  const position = (await readPartitions(db.writerClient, groupId)).positions.get('t/0');
  expect(position).toMatchObject({ nextOffset: 2n, last: { fingerprint: expect.stringMatching(/^[0-9a-f]{32}$/) } });
});

test('a batch is not stored after its assignment is over, nor before the take-over', async () => {
  const over = assigned(4);
  over.end('the group is rebalancing');
  await expect(createLoop().add([message('over', 9)], over)).rejects.toThrow(Fenced);
  const early = assigned(4);
  early.epoch = undefined;
  await expect(createLoop().add([message('over', 9)], early)).rejects.toThrow(Fenced);
  expect(await count('over')).toBe(0);
});

test('an insert that arrives after its assignment, when another one of the same epoch has stored its rows, stores nothing', async () => {
  const [first, second] = [assigned(5), assigned(5)];
  let arrive: (() => Promise<unknown>) | undefined;
  const command: ClickHouseClient['command'] = async (call) => {
    if (arrive || call.query !== STATEMENTS['store-events'].sql) return await db.writerClient.command(call);
    arrive = () => db.writerClient.command(call);
    first.end('the group has assigned the partitions anew');
    throw new Error('the connection was closed');
  };
  const { writerClient: client } = db;
  const breaking: Pick<ClickHouseClient, 'command' | 'exec' | 'query'> = {
    command,
    exec: (call) => client.exec(call),
    query: (call) => client.query(call),
  };
  const loop = createLoop(breaking as ClickHouseClient);
  const row = message('late', 0);
  await expect(loop.add([row], first)).rejects.toThrow(Fenced);
  await loop.add([row], second);
  await expect(arrive?.()).rejects.toMatchObject({ type: 'SESSION_NOT_FOUND' });
  expect(await count('late')).toBe(1);
});

test('a batch that failed at a server that another one has replaced does not keep the next ones from being stored', async () => {
  const { writerClient: client } = db;
  const [first, second] = [assigned(6, randomUUID()), assigned(6)];
  // The first server answers until it breaks off.
  const atFirst: Pick<ClickHouseClient, 'command' | 'exec' | 'query'> = {
    async command(call) {
      if (call.query !== STATEMENTS['store-events'].sql || first.signal.aborted) return await client.command(call);
      first.end('the group has assigned the partitions anew');
      throw new Error('the connection was closed');
    },
    exec: (call) => client.exec(call),
    query: (call) => client.query({ ...call, query_params: { ...call.query_params, server: '' } }),
  };
  const loop = createLoop(atFirst as ClickHouseClient);
  await expect(loop.add([message('replaced', 2)], first)).rejects.toThrow(Fenced);
  await loop.add([message('replaced', 2)], second);
  expect(await count('replaced')).toBe(1);
});

test('once a newer epoch is recorded, an older one stores neither rows nor positions', async () => {
  const client = db.writerClient;
  await client.command({
    query: 'INSERT INTO writer_epochs (group_id, incarnation, generation) VALUES ({group:String}, 1, 9)',
    query_params: { group: groupId },
  });
  const before = (await readPartitions(client, groupId)).positions.get('t/0');
  await expect(createLoop().add([message('fenced', 20)], assigned(8))).rejects.toThrow(Fenced);
  const positions = new Positions({
    client,
    ownership: db.writer().ownership,
    groupId,
    statementTimeoutMs: 240_000,
  });
  const position = { topic: 't', partition: 0, from: 0n, nextOffset: 1n, last: undefined };
  await expect(positions.store([position], { incarnation: 1, generation: 8, server: '' })).rejects.toThrow(Fenced);
  expect(await count('fenced')).toBe(0);
  expect((await readPartitions(client, groupId)).positions.get('t/0')).toEqual(before);
});

test('a failure halves the batch size, down to one message, and successes let it grow again', () => {
  const messages = Array.from({ length: 64 }, (_, index) => message('size', index));
  const size = new BatchSize(1_000_000);
  expect(size.firstOf(messages)).toHaveLength(64);
  const sizes: number[] = [];
  for (let failures = 0; failures < 8; failures += 1) {
    size.failed(size.firstOf(messages));
    sizes.push(size.firstOf(messages).length);
  }
  expect(sizes).toEqual([32, 16, 8, 4, 2, 1, 1, 1]);
  for (let successes = 0; successes < 60; successes += 1) size.worked();
  expect(size.firstOf(messages)).toHaveLength(64);
});
