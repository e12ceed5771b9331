import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { OrderedPool } from './ordered-pool.ts';

/** Tasks that end when they are told to. */
function controlled() {
  const started: string[] = [];
  const endings = new Map<string, PromiseWithResolvers<void>>();
  return {
    started,
    task(name: string, key?: string, bytes = 1) {
      const ending = Promise.withResolvers<void>();
      endings.set(name, ending);
      const run = async () => {
        started.push(name);
        await ending.promise;
      };
      return { key, bytes, run };
    },
    async end(name: string) {
      endings.get(name)?.resolve();
      await turn();
    },
    async fail(name: string) {
      endings.get(name)?.reject(new Error(`${name} failed`));
      await turn();
    },
  };
}

const limits = { concurrency: 2, waitingMax: 2, bytesMax: 10 };

async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const note = () => {
    settled = true;
  };
  promise.then(note, note);
  await turn();
  return settled;
}

test('as many tasks run as may, and the next is taken when one has ended', async () => {
  const { started, task, end } = controlled();
  const pool = new OrderedPool(limits);
  await pool.add(task('a'));
  await pool.add(task('b'));
  const third = pool.add(task('c'));
  expect(await isSettled(third)).toBe(false);
  await end('a');
  expect(await isSettled(third)).toBe(true);
  expect(started).toEqual(['a', 'b', 'c']);
});

test('tasks of one key run in their order, and others pass them', async () => {
  const { started, task, end } = controlled();
  const pool = new OrderedPool(limits);
  await pool.add(task('k1', 'k'));
  await pool.add(task('k2', 'k'));
  await pool.add(task('other', 'o'));
  expect(started).toEqual(['k1', 'other']);
  await end('other');
  expect(started).toEqual(['k1', 'other']);
  await end('k1');
  expect(started).toEqual(['k1', 'other', 'k2']);
  const drained = pool.drained();
  expect(await isSettled(drained)).toBe(false);
  await end('k2');
  await drained;
});

test('what waits and what it weighs is bounded; a task heavier than all that may be held runs alone', async () => {
  const { started, task, end } = controlled();
  const pool = new OrderedPool(limits);
  for (const name of ['k1', 'k2', 'k3']) await pool.add(task(name, 'k'));
  const fourth = pool.add(task('k4', 'k'));
  expect(await isSettled(fourth)).toBe(false);
  for (const name of ['k1', 'k2', 'k3', 'k4']) await end(name);
  await pool.drained();
  expect(started).toEqual(['k1', 'k2', 'k3', 'k4']);
  const heavy = pool.add(task('heavy', undefined, 50));
  expect(await isSettled(heavy)).toBe(true);
  const light = pool.add(task('light'));
  expect(await isSettled(light)).toBe(false);
  await end('heavy');
  await light;
  expect(started.slice(-2)).toEqual(['heavy', 'light']);
});

test('when a task fails nothing more is begun, and the producer is told', async () => {
  const { started, task, fail } = controlled();
  const pool = new OrderedPool(limits);
  await pool.add(task('k1', 'k'));
  await pool.add(task('k2', 'k'));
  await fail('k1');
  await expect(pool.add(task('later'))).rejects.toThrow('k1 failed');
  await expect(pool.drained()).rejects.toThrow('k1 failed');
  expect(started).toEqual(['k1']);
});
