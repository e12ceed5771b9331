import { expect, test } from 'vitest';
import { ReadingPace } from './reading-pace.ts';

const CHUNK = Buffer.alloc(64 * 1_024);

/** A result of many chunks, its reader, and a clock. */
function createReading(beforeChunk: () => void = () => undefined) {
  let nowMs = 0;
  const pace = new ReadingPace(() => nowMs);
  const chunks = pace.watch(
    (async function* () {
      for (;;) {
        beforeChunk();
        yield CHUNK;
      }
    })(),
  );
  return {
    pace,
    chunks,
    pass(seconds: number) {
      nowMs += seconds * 1_000;
    },
  };
}

test.each([
  { kibPerSecond: 90, isSlow: true },
  { kibPerSecond: 120, isSlow: false },
])('a reader of $kibPerSecond KiB a second in bursts of 1 MiB is slow: $isSlow', async ({ kibPerSecond, isSlow }) => {
  const { pace, chunks, pass } = createReading();
  await chunks.next();
  const looks: boolean[] = [];
  for (let burst = 0; burst < 20; burst += 1) {
    pass(1_024 / kibPerSecond);
    looks.push(pace.isSlow());
    for (let chunk = 0; chunk < 16; chunk += 1) await chunks.next();
  }
  expect(looks.includes(true)).toBe(isSlow);
});

test('a reader that takes nothing is slow after a while', async () => {
  const { pace, chunks, pass } = createReading();
  await chunks.next();
  pass(19);
  expect(pace.isSlow()).toBe(false);
  pass(2);
  expect(pace.isSlow()).toBe(true);
});

test('a reader is not slow where ClickHouse is', async () => {
  const reading = createReading(() => reading.pass(60));
  expect(reading.pace.isSlow()).toBe(false);
  for (let chunk = 0; chunk < 10; chunk += 1) {
    await reading.chunks.next();
    expect(reading.pace.isSlow()).toBe(false);
  }
});
