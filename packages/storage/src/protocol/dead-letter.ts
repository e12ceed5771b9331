import { createHash } from 'node:crypto';

/** A row, or a whole message, that cannot be stored. */
export interface DeadLetter {
  readonly kind: string;
  readonly format: string;
  readonly topic: string;
  readonly partition: number;
  readonly offset: string;
  /** The row's index in its message, counted from 0. */
  readonly line: number;
  /** Byte for byte as it came. */
  readonly row: Buffer;
  readonly reason: string;
}

/**
 * The reason of a late event whose month lies on a cold volume that does not answer, so that nobody knows whether the event is stored
 * already. The writer sends it to Kafka again by itself, once the volume answers.
 */
export const COLD_VOLUME_AWAY = 'COLD_VOLUME_AWAY: the event is stored once the volume of its month answers';

/**
 * Returns the same id for the same row, whenever and in whichever partition it fails. A rejected call has the same id
 * whenever it comes: its row ends with the time of receipt.
 */
export function deadLetterId({ kind, row }: Pick<DeadLetter, 'kind' | 'row'>): string {
  const end = kind === 'rejected' ? row.lastIndexOf(',"received_at":') : -1;
  const identity = end < 0 ? row : row.subarray(0, end);
  return createHash('sha256').update(kind).update('\0').update(identity).digest('hex').slice(0, 32);
}

/** Returns the part of a reason that holds nothing of the row: the name of the error, such as `CANNOT_PARSE_TEXT`. */
export function errorTypeOf(reason: string): string {
  return /^[A-Z_]+(?=:)/.exec(reason)?.[0] ?? 'UNREADABLE_MESSAGE';
}
