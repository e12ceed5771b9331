import { mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { sleep } from '../base/retry.ts';
import { eventually } from '../testing/eventually.ts';
import fc, { sample } from '../testing/fast-check.ts';
import { withFileLock } from './file-lock.ts';

let folder: string;
let path: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-lock-'));
  path = join(folder, 'file');
});
afterEach(() => rm(folder, { recursive: true }));

/** Makes the lock look as if its process had been killed. */
async function growOld(ageMs = 60_000): Promise<void> {
  const then = new Date(Date.now() - ageMs);
  await utimes(`${path}.lock`, then, then);
}

test('many processes find a lock that was left behind, and one at a time takes it', async () => {
  let working = 0;
  const seen: number[] = [];
  const work = async () => {
    working += 1;
    seen.push(working);
    await sleep(2);
    working -= 1;
  };
  const delays = fc.array(fc.double({ min: 0, max: 4, noNaN: true }), { minLength: 8, maxLength: 8 });
  for (const round of sample(delays, 20)) {
    await writeFile(`${path}.lock`, '');
    await growOld();
    const takers = round.map(async (ms) => {
      await sleep(ms);
      await withFileLock(path, work);
    });
    await Promise.all(takers);
  }
  expect(seen).toEqual(Array(160).fill(1));
  expect(await readdir(folder)).toEqual([]);
});

test('a lock that was left behind before the clock was set back by an hour is taken', async () => {
  await writeFile(`${path}.lock`, '');
  await growOld(-3_600_000);
  expect(await withFileLock(path, async () => 'done')).toBe('done');
});

test('work that lasts longer than its lock does not remove the next lock', async () => {
  const events: string[] = [];
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const hold = (name: string, until: Promise<void>) =>
    withFileLock(path, async () => {
      events.push(`${name} begins`);
      await until;
      events.push(`${name} ends`);
    });
  const outlasting = hold('first', first.promise);
  await eventually(() => events).toHaveLength(1);
  await growOld();
  const next = hold('second', second.promise);
  await eventually(() => events).toHaveLength(2);
  first.resolve();
  await outlasting;
  const last = hold('third', Promise.resolve());
  await sleep(200);
  second.resolve();
  await Promise.all([next, last]);
  expect(events).toEqual(['first begins', 'second begins', 'first ends', 'second ends', 'third begins', 'third ends']);
  expect(await readdir(folder)).toEqual([]);
});
