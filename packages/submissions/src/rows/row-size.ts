import { Problem } from '@sluice/shared/http/problem';
import type { Submission } from '../reading/submission.ts';

/**
 * The largest row, in bytes. kafkajs makes one record batch of what one send holds for a partition, and a broker takes
 * batches of 1,048,588 bytes by default (`message.max.bytes`).
 */
export const ROW_BYTES_MAX = 800 * 1_024;

/** The most that a row holds besides the texts of its submission, in bytes. */
const ROW_OVERHEAD_BYTES = 250;

/**
 * Estimates the bytes of a submission's rows before they are created: each row repeats the identifiers. The estimate may
 * be too high, never too low.
 *
 * @throws {Problem} `body_too_large` when it is over `bytesMax`
 */
export function estimateRowBytes(submission: Submission, bodyBytes: number, bytesMax: number): number {
  const { userId, groupId, events, properties } = submission;
  const identifiers = Buffer.byteLength(JSON.stringify([userId, groupId]));
  const bytes = bodyBytes + (events.length + (properties?.length ?? 0) + 2) * (ROW_OVERHEAD_BYTES + identifiers);
  if (bytes > bytesMax) throw rowsTooLarge(bytes, bytesMax);
  return bytes;
}

/** Whether one row fits into a Kafka record. A number may be longer in its row than in the body: `1e20`. */
export function fitsRecord(line: string): boolean {
  return line.length <= ROW_BYTES_MAX / 3 || Buffer.byteLength(line) <= ROW_BYTES_MAX;
}

/** The rows of a request are `bytes`, and may be `bytesMax`. */
export function rowsTooLarge(bytes: number, bytesMax: number): Problem {
  const message = `becomes about ${bytes} bytes of rows, of at most ${bytesMax}: each row repeats the identifiers`;
  return new Problem('body_too_large', 'The submission is too large: send it in parts.', {
    errors: [{ path: '', code: 'too_large', message }],
  });
}
