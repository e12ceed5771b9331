import { expect, test } from 'vitest';
import { type Check, ok, type Result, runChecks, wrong } from './check.ts';
import { versionFinding } from './clickhouse-checks.ts';

const check = (name: string, run: Check['run'], needs: readonly string[] = []): Check => ({
  ...{ name, needs, run },
  why: 'It matters.',
});

async function statesOf(checks: readonly Check[], signal = new AbortController().signal, checkMsMax = 60_000) {
  const seen: Result[] = [];
  const options = { signal, secrets: ['a long secret', 'ab'], onResult: (one: Result) => seen.push(one), checkMsMax };
  const results = await runChecks(checks, options);
  expect(results).toEqual(seen);
  return results.map(({ name, state, found }) => [name, state, found]);
}

test('a check whose ground is missing is skipped, and so is what needs it', async () => {
  const results = await statesOf([
    check('a', async () => wrong('broken', 'mend it')),
    check('b', async () => ok('fine'), ['a']),
    check('c', async () => ok('fine'), ['b']),
    check('d', async () => ok('fine')),
  ]);
  expect(results).toEqual([
    ['a', 'wrong', 'broken'],
    ['b', 'skipped', 'not tried: a comes first'],
    ['c', 'skipped', 'not tried: b comes first'],
    ['d', 'ok', 'fine'],
  ]);
});

test('a check that never ends is wrong after its time, and the others are tried', async () => {
  const hanging = check(
    'hanging',
    (signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve(ok('late')))),
  );
  const results = await statesOf([hanging, check('next', async () => ok('fine'))], undefined, 20);
  expect(results).toEqual([
    ['hanging', 'wrong', 'no answer within 0.02 s'],
    ['next', 'ok', 'fine'],
  ]);
});

test('an interruption skips what is left, and waits for what a check removes', async () => {
  const controller = new AbortController();
  let isRemoved = false;
  const making = check('making', async (signal) => {
    controller.abort();
    await new Promise((resolve) => setTimeout(resolve, 10));
    isRemoved = signal.aborted;
    return ok('made');
  });
  const results = await statesOf([making, check('next', async () => ok('fine'))], controller.signal);
  expect(results.map(([, state]) => state)).toEqual(['skipped', 'skipped']);
  expect(isRemoved).toBe(true);
});

test('an error is told in one line, without secrets and control characters', async () => {
  const failing = check('failing', async () => {
    throw new Error('refused\n  with a long secret\u001b[2J, about\nit.');
  });
  expect(await statesOf([failing])).toEqual([['failing', 'wrong', 'refused with (secret)\\u001b[2J, about it']]);
});

test.each([
  ['24.8.4.13', 'wrong'],
  ['25.3.1.1', 'wrong'],
  ['25.4.1.1', 'note'],
  ['26.7.3.19', 'ok'],
  ['27.1.1.1', 'note'],
])('ClickHouse %s: %s', (version, state) => {
  expect(versionFinding(version).state).toBe(state);
});
