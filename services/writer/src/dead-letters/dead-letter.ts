import { createHash } from 'node:crypto';

/** A row, or a whole message, that cannot be stored. */
export interface DeadLetter {
  readonly kind: string;
  readonly format: string;
  readonly topic: string;
  readonly partition: number;
  readonly offset: string;
  /** The row's place in its message, counted from 0. */
  readonly line: number;
  /** Byte for byte as it came. */
  readonly row: Buffer;
  readonly reason: string;
}

/** The same for the same row, wherever and whenever it fails. */
export function deadLetterId({ kind, row }: Pick<DeadLetter, 'kind' | 'row'>): string {
  return createHash('sha256').update(kind).update('\0').update(row).digest('hex').slice(0, 32);
}

/** Too many rows cannot be stored: more likely something is wrong with the rest of the system than with each row. */
export class TooManyDeadLetters extends Error {
  override readonly name = 'TooManyDeadLetters';
}

/** The time over which dead letters are compared with all rows. */
const WINDOW_MS = 5 * 60_000;

const SHARE_MAX = 0.01;

/** So many are taken in any case: where little comes in, a few are soon more than the share. */
export const DEAD_LETTERS_MIN = 100;

export interface DeadLetterAlarm {
  /** @throws {TooManyDeadLetters} when more than 1 % of the rows of the last five minutes are dead letters */
  count(rows: number, dead: number): void;
}

export function createDeadLetterAlarm(now: () => number = Date.now): DeadLetterAlarm {
  let counts: { at: number; rows: number; dead: number }[] = [];
  return {
    count(rows, dead) {
      counts = counts.filter(({ at }) => at > now() - WINDOW_MS);
      counts.push({ at: now(), rows, dead });
      const total = { rows: 0, dead: 0 };
      for (const counted of counts) {
        total.rows += counted.rows;
        total.dead += counted.dead;
      }
      if (total.dead <= DEAD_LETTERS_MIN || total.dead <= SHARE_MAX * total.rows) return;
      throw new TooManyDeadLetters(
        `${total.dead} of the last ${total.rows} rows could not be stored; the newest are in dead_letters`,
      );
    },
  };
}
