import { readFile, rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';

/** Offset and length; the length counts what follows it. */
const BATCH_HEADER_BYTES = 12;

/**
 * Cuts the newest record batches off a partition's log, as a disk that lost its last writes does. The broker must be
 * down; when it starts it takes the log as it is. Returns the number of batches that are left.
 */
export async function cutOffLog(kafkaDir: string, partition: string, batches: number): Promise<number> {
  const folder = join(kafkaDir, 'broker-1', 'log', partition);
  const segment = join(folder, `${'0'.repeat(20)}.log`);
  const bytes = await readFile(segment);
  const starts: number[] = [];
  for (let at = 0; at + BATCH_HEADER_BYTES <= bytes.length; at += BATCH_HEADER_BYTES + bytes.readInt32BE(at + 8)) {
    starts.push(at);
  }
  const left = starts.length - batches;
  if (left < 0) throw new RangeError(`${partition} has ${starts.length} batches only`);
  await truncate(segment, starts[left]);
  for (const index of ['index', 'timeindex']) {
    await rm(segment.replace(/log$/, index), { force: true });
  }
  return left;
}
