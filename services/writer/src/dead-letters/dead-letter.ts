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

/** Returns the same id for the same row, whenever and in whichever partition it fails. */
export function deadLetterId({ kind, row }: Pick<DeadLetter, 'kind' | 'row'>): string {
  return createHash('sha256').update(kind).update('\0').update(row).digest('hex').slice(0, 32);
}
