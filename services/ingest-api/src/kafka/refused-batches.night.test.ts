import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, test } from 'vitest';
import { post, startIngest } from '../testing/ingest.ts';
import { anEvent, configure, ingest, startBeforeEach } from '../testing/refusing-topics.ts';

startBeforeEach();

test('a deletion that partitions refuse is sent again with the time of its first attempt: what came between stays', async () => {
  const remove = (query = '') =>
    ingest.app.inject({
      method: 'DELETE',
      url: `/v1/users?foreignId=u${query}`,
      headers: { authorization: 'Bearer all' },
    });
  await configure('events', 'cleanup.policy', 'compact');
  await eventually(async () => (await remove()).statusCode).toBe(503);
  const { code, detail } = (await remove()).json();
  expect(code).toBe('event_log_unavailable');
  const [, before = ''] = /before=(\S+Z)/.exec(detail) ?? [];
  await configure('events', 'cleanup.policy', 'delete');
  await eventually(async () => (await remove(`&before=${before}`)).statusCode).toBe(202);
  expect((await remove('&before=2999-01-01')).statusCode).toBe(202);
  const versions = (await ingest.read('events', 6)).flatMap(({ rows }) => rows.map((row) => Number(row['version'])));
  expect(versions.filter((version) => version === Date.parse(before) * 1_000).length).toBeGreaterThanOrEqual(3);
  expect(Math.max(...versions)).toBeLessThanOrEqual((Date.now() + 1) * 1_000);
  expect((await remove('&before=soon')).json()).toMatchObject({ status: 400, errors: [{ path: 'before' }] });
});

test('a record batch that is larger than the topic takes is sent in parts', async () => {
  await configure('events', 'max.message.bytes', '150000');
  const bodies = Array.from({ length: 12 }, () => ({
    foreignUserGroupId: 'a',
    events: [anEvent({ pad: 'x'.repeat(60_000) })],
  }));
  const send = async () => {
    const responses = await Promise.all(bodies.map((body) => post(ingest.app, body)));
    expect(responses.map(({ statusCode }) => statusCode)).toEqual(Array(12).fill(202));
    return ingest.warnings.length;
  };
  // On a busy machine the requests may not meet in one batch.
  await eventually(send).toBeGreaterThan(0);
  const warnings = ingest.warnings.length;
  expect(await send(), 'what the topic takes is known by now').toBe(warnings);
});

test('calls that are taken and rejected in turn, each a message of its own, fit into record batches', async () => {
  const calls = Array.from({ length: 300 }, () => [{ type: 'track', userId: 'u', event: 'e' }, { type: 'none' }]);
  const single = await startIngest(inject('kafkaBrokers'), { KAFKA_PARTITIONS: '1', PRODUCE_LINGER_MS: '1000' });
  try {
    const send = () => post(single.app, { batch: calls.flat() }, { path: '/v1/batch' });
    const responses = await Promise.all(Array.from({ length: 16 }, send));
    expect(new Set(responses.map(({ statusCode }) => statusCode))).toEqual(new Set([200]));
    expect(responses[0]?.json()).toMatchObject({ rejectedCount: 300 });
    expect(single.warnings).toEqual([]);
  } finally {
    await single.stop();
  }
});

test('a row that is larger than the topic takes is refused at once, by name, and delays nobody', async () => {
  await configure('events', 'max.message.bytes', '150000');
  const large = { foreignUserGroupId: 'a', events: [anEvent({ pad: 'x'.repeat(200_000) })] };
  const small = { foreignUserGroupId: 'a', events: Array.from({ length: 20 }, () => anEvent()) };
  const [refused, accepted] = await Promise.all([post(ingest.app, large), post(ingest.app, small)]);
  expect(accepted.statusCode).toBe(202);
  expect(refused.statusCode).toBe(413);
  expect(refused.json()).toMatchObject({ code: 'body_too_large', errors: [{ code: 'too_large' }] });
});
