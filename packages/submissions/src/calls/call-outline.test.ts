import { expect, test } from 'vitest';
import { NO_PAUSE } from '../reading/pause.ts';
import { readCallOutline } from './call-outline.ts';

const CALLS_MAX = 5_000;

const names = Array.from({ length: 2_000 }, (_, index) => `"n${index}":0`).join();

test.each([
  ['calls that are none', 'batch', `{"batch":[${Array(2_000).fill('1').join()}]}`],
  ['unknown fields of a batch', 'batch', `{${names},"batch":[]}`],
  ['unknown fields of the first call', 'batch', `{"batch":[{${names}}]}`],
  ['unknown fields of a single call', 'track', `{${names}}`],
] as const)('there is a pause before each part of a body: %s', async (_what, route, body) => {
  let pauses = 0;
  const pause = () => {
    pauses += 1;
    return undefined;
  };
  await readCallOutline(Buffer.from(body), route, CALLS_MAX, pause);
  expect(pauses).toBeGreaterThanOrEqual(2_000);
});

test('a name that is written with escapes is the same name', async () => {
  const body = '{"\\u0062atch":[{"a":1}],"write\\u004bey":"key"}';
  const outline = await readCallOutline(Buffer.from(body), 'batch', CALLS_MAX, NO_PAUSE);
  expect(outline).toMatchObject({ writeKey: 'key', calls: [{ size: 7 }] });
});
