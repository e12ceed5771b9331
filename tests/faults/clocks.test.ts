import { fileURLToPath } from 'node:url';
import { eventually } from '@sluice/shared/testing/eventually';
import { until } from '@sluice/shared/testing/until';
import { expect, inject, test } from 'vitest';
import { startIngestAlone } from '../kit/ingest-alone.ts';
import { readRows } from '../kit/kafka-rows.ts';

const BODY = '{"foreignUserGroupId":"a","events":[{"event":"e"}]}';
const HOUR_MS = 3_600_000;

function withClock(shiftMs: number): Record<string, string> {
  const preload = fileURLToPath(new URL('../kit/shifted-clock.mjs', import.meta.url));
  return { NODE_OPTIONS: `--import ${preload}`, CLOCK_SHIFT_MS: String(shiftMs) };
}

async function readiness(url: string): Promise<{ status: number; text: string }> {
  const response = await fetch(`${url}/readyz`);
  return { status: response.status, text: await response.text() };
}

test.each([
  ['an hour ahead of', HOUR_MS],
  ['an hour behind', -HOUR_MS],
])("an ingest-api whose clock is %s Kafka's is not ready, says why, and accepts nothing", async (_, shiftMs) => {
  const env = withClock(shiftMs);
  const kafkaBrokers = inject('kafkaBrokers');
  await using ingest = await startIngestAlone({ kafkaBrokers, name: `clock${shiftMs}`, env, ready: false });
  const { url } = ingest.service;
  const word = shiftMs > 0 ? 'ahead of' : 'behind';
  const expected = expect.stringMatching(new RegExp(`the clock is 3(600|599)\\.\\d s ${word} Kafka's`));
  await eventually(() => readiness(url).catch(() => undefined)).toMatchObject({ status: 503, text: expected });
  expect(await ingest.submit(BODY)).toBe(503);
  const deletion = await fetch(`${url}/v1/users?foreignId=jane`, {
    method: 'DELETE',
    headers: { authorization: 'Bearer test' },
  });
  expect([deletion.status, await deletion.json()]).toMatchObject([503, { code: 'clock_skewed' }]);
  process.kill(ingest.service.pid, 'SIGUSR2');
  await eventually(() => ingest.submit(BODY)).toBe(202);
  expect(await readiness(url)).toMatchObject({ status: 200 });
});

test('a clock that is set while the process runs is noticed before anything is accepted by it', async () => {
  const kafkaBrokers = inject('kafkaBrokers');
  await using ingest = await startIngestAlone({ kafkaBrokers, name: 'clockset', env: withClock(0) });
  expect(await ingest.submit(BODY)).toBe(202);
  await using skewed = await startIngestAlone({
    kafkaBrokers,
    name: 'clockset',
    env: withClock(HOUR_MS),
    ready: false,
  });
  await eventually(() => skewed.submit(BODY).catch(() => 0)).toBe(503);
  process.kill(skewed.service.pid, 'SIGUSR2');
  await skewed.service.ready();
  expect(await skewed.submit(BODY)).toBe(202);
  process.kill(skewed.service.pid, 'SIGUSR2');
  // Nothing is accepted in between: an event without a timestamp would get one of the wrong hour.
  let accepted = 2;
  await until('a 503', async () => {
    const status = await skewed.submit(BODY);
    if (status === 202) accepted += 1;
    return status === 503;
  });
  const rows = await readRows(kafkaBrokers, 'clockset.events', (found) => found.length >= accepted);
  const now = Date.now();
  const hours = rows.map(({ row }) => Math.round((Number(row['received_at']) / 1_000 - now) / HOUR_MS));
  expect(new Set(hours), 'hours by which a row is ahead').toEqual(new Set([0]));
  await eventually(() => readiness(skewed.service.url)).toMatchObject({ status: 503 });
});
