import { expect, test } from 'vitest';
import { sluice } from '../kit/backups.ts';
import { COPY, startCopiedMirrors } from '../kit/copied-mirrors.ts';
import { readMetric } from '../kit/metrics.ts';

async function sumOf(read: Promise<string>): Promise<number> {
  return Number(await read);
}

test('a wiped server is copied under load, and goes on where the copy began, not where it was before', async () => {
  await using mirrors = await startCopiedMirrors('copied');
  const { one, other, running, more, read } = mirrors;
  await more();
  await running.writers['a2']?.stop();
  // What it has committed is far behind from now on.
  await more(200);
  await mirrors.wipe();
  expect(await sluice(running, COPY)).toEqual({ code: 0, output: expect.stringContaining('a2 is complete') });
  const positions = await sumOf(read(other, 'SELECT sum(next_offset) FROM writer_positions FINAL'));
  await mirrors.startWriter();
  await more();
  await mirrors.expectEqual();

  const { a2 } = running.writers;
  if (!a2) throw new Error('a2 has no writer');
  const stored = await sumOf(read(one, 'SELECT sum(next_offset) FROM writer_positions FINAL'));
  const messages = await readMetric(a2, 'sluice_writer_stored_messages_total');
  expect(messages).toBeGreaterThan(0);
  expect(messages).toBeLessThanOrEqual(stored - positions);
});
