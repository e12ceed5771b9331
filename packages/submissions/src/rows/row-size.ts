import { Problem } from '@sluice/shared/http/problem';
import type { Submission } from '../reading/submission.ts';

/**
 * The largest row, in bytes. kafkajs makes one record batch of what one send holds for a partition, and a broker takes
 * batches of 1,048,588 bytes by default (`message.max.bytes`).
 */
export const ROW_BYTES_MAX = 800 * 1_024;

/**
 * Returns the least that the rows of a submission will be, in bytes: each row repeats the identifiers. So one that can never
 * be taken is refused as too large even where memory is short.
 */
export function leastRowBytes({ subject, userId = '', groupId = '', events, properties = [] }: Submission): number {
  const ofProperty = Buffer.byteLength(subject === 'user' ? userId : groupId);
  return events.length * Buffer.byteLength(userId + groupId) + properties.length * ofProperty;
}

/** Whether one row fits into a Kafka record. A number may be longer in its row than in the body: `1e20`. */
export function fitsRecord(line: string): boolean {
  return line.length <= ROW_BYTES_MAX / 3 || Buffer.byteLength(line) <= ROW_BYTES_MAX;
}

/** The rows of a request are more than `bytesMax`. */
export function rowsTooLarge(bytesMax: number): Problem {
  const message = `becomes more than ${bytesMax} bytes of rows: each row repeats the identifiers, and numbers may grow`;
  return new Problem('body_too_large', 'The submission is too large: send it in parts.', {
    errors: [{ path: '', code: 'too_large', message }],
  });
}
