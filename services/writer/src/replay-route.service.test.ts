import { createLogger } from '@sluice/shared/base/log';
import { createClickHouse } from '@sluice/shared/clickhouse/client';
import { takeDatabase } from '@sluice/shared/clickhouse/testing/test-database';
import { createHttpServer } from '@sluice/shared/http/server';
import { DeadLetters } from '@sluice/storage/dead-letters';
import kafkajs from 'kafkajs';
import { Registry } from 'prom-client';
import { expect, inject, test } from 'vitest';
import { registerReplay } from './replay-route.ts';

const LIMITS = {
  EVENT_BYTES_MAX: 2_000,
  PROPERTIES_PER_SUBMISSION_MAX: 10,
  NOBODY_IDS: [],
  NOBODY_IDS_ADDED: [],
  KAFKA_PARTITIONS: 3,
  KAFKA_TOPIC_PREFIX: 'none.',
};

test('what is not there, what cannot be taken, and what Kafka does not take get a status each, and nothing is marked', async () => {
  const database = await takeDatabase(inject('clickhouseUrl'));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => database.release());
  const client = createClickHouse(database.config, {
    application: 'test',
    requestTimeoutMs: 240_000,
    connectionsMax: 1,
  });
  stack.defer(() => client.close());
  const kafka = new kafkajs.Kafka({
    brokers: ['127.0.0.1:9'],
    retry: { retries: 0 },
    logLevel: kafkajs.logLevel.NOTHING,
  });
  const app = createHttpServer({
    logger: createLogger('test', 'silent'),
    registry: new Registry(),
    readiness: () => [],
  });
  stack.defer(() => app.close());
  registerReplay(app, new DeadLetters(LIMITS, client, kafka));
  const call = (more: object) =>
    JSON.stringify({
      workspace_id: 'a',
      call: '{"type":"track","event":"e","userId":"u"}',
      ...more,
      reason: 'r',
      received_at: 1,
    });
  const letter = { kind: 'rejected', format: '1', topic: 't', partition: 0, offset: 1, line: 0, reason: 'r' };
  await client.insert({
    table: 'dead_letters',
    values: [
      { ...letter, id: 'cut', row: call({ cut: true }) },
      { ...letter, id: 'whole', row: call({}) },
    ],
    format: 'JSONEachRow',
  });
  // At once: one does not keep the others from their turn.
  const responses = await Promise.all(
    ['whole', 'cut', 'nothing', '..%2Fcut'].map((id) =>
      app.inject({ method: 'POST', url: `/dead-letters/${id}/replay` }),
    ),
  );
  expect(responses.map((response) => [response.statusCode, response.json().code])).toEqual([
    [503, 'event_log_unavailable'],
    [409, 'not_replayable'],
    [404, 'not_found'],
    [404, 'not_found'],
  ]);
  // Of what is cut off, another call can be taken; one that cannot be says why, and a row has none.
  await client.insert({
    table: 'dead_letters',
    values: [{ ...letter, id: 'row', kind: 'events', row: '{}' }],
    format: 'JSONEachRow',
  });
  const changed = async (id: string, payload: object) => {
    const response = await app.inject({ method: 'POST', url: `/dead-letters/${id}/replay`, payload });
    return [response.statusCode, response.json().code, response.json().detail];
  };
  const good = '{"type":"track","event":"e","userId":"u"}';
  expect((await changed('cut', { call: good })).slice(0, 2)).toEqual([503, 'event_log_unavailable']);
  expect(await changed('whole', { call: '{"type":"track","event":"e"}' })).toEqual([
    ...[409, 'not_replayable', expect.stringMatching(/userId/)],
  ]);
  expect((await changed('row', { call: good })).slice(0, 2)).toEqual([409, 'not_replayable']);
  expect((await changed('whole', { call: 1 })).slice(0, 2)).toEqual([400, 'invalid_request']);
  const marked = await client.query({
    query: 'SELECT count() FROM dead_letters FINAL WHERE replayed_at IS NOT NULL',
    format: 'TabSeparated',
  });
  expect((await marked.text()).trim()).toBe('0');
});
