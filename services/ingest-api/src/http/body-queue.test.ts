import { expect, test } from 'vitest';
import { BodyQueue } from './body-queue.ts';

const SMALL = Buffer.alloc(10);
const LARGE = Buffer.alloc(1_000_000);

/** Blocks the event loop for longer than work may without a pause. */
function block(): void {
  for (const since = performance.now(); performance.now() - since < 10; );
}

test('a small body is begun at once, and pauses when it takes as long as a large one', async () => {
  const bodies = new BodyQueue();
  let isBegun = false;
  const work = bodies.read('a', SMALL, async (pause) => {
    isBegun = true;
    block();
    const waiting = pause();
    expect(waiting).toBeInstanceOf(Promise);
    await waiting;
    return 'done';
  });
  expect(isBegun).toBe(true);
  expect(await work).toBe('done');
});

test('small bodies that take long go on one after the other, and between large ones', async () => {
  const bodies = new BodyQueue();
  let running = 0;
  const events: string[] = [];
  const read = (name: string, body: Buffer) =>
    bodies.read(name, body, async (pause) => {
      events.push(`${name} begins`);
      block();
      await pause();
      running += 1;
      expect(running).toBe(1);
      block();
      await pause();
      running -= 1;
      events.push(`${name} ends`);
    });
  await Promise.all([read('a', LARGE), read('b', SMALL), read('c', SMALL), read('d', LARGE)]);
  expect(events.indexOf('c begins')).toBeLessThan(events.indexOf('b ends'));
  expect(events.filter((event) => event.endsWith('ends'))).toEqual(['a ends', 'b ends', 'c ends', 'd ends']);
  expect(await bodies.read('e', LARGE, async () => 'the next')).toBe('the next');
});

test('a small body that fails gives its turn back', async () => {
  const bodies = new BodyQueue();
  const failing = bodies.read('a', SMALL, async (pause) => {
    block();
    await pause();
    throw new Error('malformed');
  });
  await expect(failing).rejects.toThrow('malformed');
  expect(await bodies.read('a', LARGE, async () => 'the next')).toBe('the next');
});
