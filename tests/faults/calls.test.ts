import { deadLettersConfig, parse, runDeadLettersCommand } from '@sluice/cli/dead-letters/dead-letters-command';
import { createLogger } from '@sluice/shared/base/log';
import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { loadConfig } from '@sluice/shared/config';
import { createKafka } from '@sluice/shared/kafka/client';
import { until } from '@sluice/shared/testing/until';
import { DeadLetters } from '@sluice/storage/dead-letters';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { expectBalanced, sumsOf } from '../kit/audit.ts';
import { countCalls, sendCalls, track } from '../kit/calls.ts';
import { readMetric } from '../kit/metrics.ts';
import { type Pipeline, startPipeline } from '../kit/pipeline.ts';
import type { EventPage } from '../kit/records.ts';

const EVENT_BYTES_MAX = 2_000;

let pipeline: Pipeline;

beforeAll(async () => {
  pipeline = await startPipeline({
    kafkaBrokers: inject('kafkaBrokers'),
    clickhouseUrl: inject('clickhouseUrl'),
    name: 'calls',
    env: { EVENT_BYTES_MAX: String(EVENT_BYTES_MAX) },
  });
});
afterAll(() => pipeline?.stop());

/** Runs the command for dead letters with a limit of its own. */
async function deadLetters(limit: number, ...args: string[]): Promise<{ code: number; output: string }> {
  const config = loadConfig(deadLettersConfig, { ...pipeline.environment, EVENT_BYTES_MAX: String(limit) });
  const client = createClickHouse(config, { application: 'test', requestTimeoutMs: 10_000, connectionsMax: 1 });
  try {
    const lines: string[] = [];
    const deadLetters = new DeadLetters(config, client, createKafka(config, 'test', createLogger('test', 'silent')));
    const code = await runDeadLettersCommand(parse(args), deadLetters, (line) => lines.push(line));
    return { code, output: lines.join('\n') };
  } finally {
    await client.close();
  }
}

async function rejectedIds(): Promise<string[]> {
  const { output } = await deadLetters(EVENT_BYTES_MAX, 'list');
  return [...output.matchAll(/^(\w+) .* "rejected" /gm)].map(([, id]) => id as string);
}

test('of a batch with a bad call the others are stored; the bad one is replayed once the limit is higher', async () => {
  const bad = { ...track('mixed', 25), timestamp: '2026-03-01T12:00:00.000Z', properties: { text: 'x'.repeat(3_000) } };
  const batch = Array.from({ length: 50 }, (_, index) => (index === 25 ? bad : track('mixed', index)));
  for (let times = 0; times < 2; times += 1) {
    expect((await sendCalls(pipeline, batch)).body).toMatchObject({
      success: true,
      rejected: [{ index: 25, code: 'too_large' }],
    });
  }
  await pipeline.drained();
  expect(await countCalls(pipeline, 'mixed')).toBe(49);
  const [id = '', ...others] = await rejectedIds();
  expect(others, 'sent twice, it is one dead letter').toEqual([]);
  // ClickHouse refused nothing, so nobody has to be alarmed.
  expect(await readMetric(pipeline.services.writer, 'sluice_writer_dead_letters_total')).toBe(0);
  expect(await readMetric(pipeline.services['ingest-api'], 'sluice_ingest_rejected_calls_total')).toBe(2);
  expect((await deadLetters(EVENT_BYTES_MAX, 'show', id)).output).toContain(`messageId`);

  expect(await deadLetters(EVENT_BYTES_MAX, 'replay', id)).toEqual({
    code: 1,
    output: `${id} cannot be taken: A call must be at most 2000 bytes as JSON, with the context of its batch.`,
  });
  for (let times = 0; times < 2; times += 1) {
    expect(await deadLetters(10_000, 'replay', id)).toEqual({ code: 0, output: `${id} replayed` });
  }
  await pipeline.drained();
  expect(await countCalls(pipeline, 'mixed')).toBe(50);
  const { body } = await pipeline.get<EventPage>('/events?event=mixed&endDate=2026-03-02');
  expect(body.results).toMatchObject([{ timestamp: bad.timestamp, userId: 'ada', properties: bad.properties }]);
});

test('the deletion of a user erases what was rejected of it, whyever it was', async () => {
  const before = await rejectedIds();
  const email = 'secret@example.com';
  const call = { type: 'track', event: 'e', userId: email };
  const response = await sendCalls(pipeline, [
    { ...call, event: '' },
    { ...call, properties: { text: 'x'.repeat(3_000), email } },
    { properties: { email, list: Array(20_000).fill(0) }, ...call },
  ]);
  expect(response.body).toMatchObject({ rejectedCount: 3 });
  const bad = await pipeline.submit<unknown>({ batch: [call], context: email }, { path: '/v1/batch' });
  expect(bad.body).toMatchObject({ rejectedCount: 1 });
  await until('the dead letters', async () => (await rejectedIds()).length === before.length + 4);
  await pipeline.deleteUser(email);
  await until('the dead letters to be erased', async () => (await rejectedIds()).length === before.length);
  expect(sumsOf(await expectBalanced(pipeline), 'rejected')).toEqual({ accepted: 6, dead_letters: 2, deleted: 4 });
});
