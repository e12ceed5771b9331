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

/** The time over which dead letters are compared with all rows. */
const WINDOW_MS = 5 * 60_000;

const SHARE_MAX = 0.01;

/** So many never raise the alarm: where little comes in, a few are soon more than the share. */
const DEAD_LETTERS_MIN = 100;

/** Whether so many rows cannot be stored that more than the rows is likely to be wrong. */
export interface DeadLetterAlarm {
  count(rows: number, dead: number): void;
  /**
   * A short phrase when more than 1 % of the rows of the last five minutes, and more than a hundred, are dead letters;
   * else `undefined`.
   */
  raised(): string | undefined;
}

export interface DeadLetterAlarmOptions {
  /** Told the phrase when the alarm is raised, and `undefined` when it is over, at the next count. */
  readonly onChange?: (raised: string | undefined) => void;
  readonly now?: () => number;
}

export function createDeadLetterAlarm({ onChange, now = Date.now }: DeadLetterAlarmOptions = {}): DeadLetterAlarm {
  let counts: { at: number; rows: number; dead: number }[] = [];
  let wasRaised = false;

  function raised(): string | undefined {
    counts = counts.filter(({ at }) => at > now() - WINDOW_MS);
    const rows = counts.reduce((sum, counted) => sum + counted.rows + counted.dead, 0);
    const dead = counts.reduce((sum, counted) => sum + counted.dead, 0);
    if (dead <= DEAD_LETTERS_MIN || dead <= SHARE_MAX * rows) return undefined;
    return `${dead} of the last ${rows} rows could not be stored: npm run dead-letters -- list`;
  }

  return {
    raised,
    count(rows, dead) {
      counts.push({ at: now(), rows, dead });
      const phrase = raised();
      if ((phrase !== undefined) === wasRaised) return;
      wasRaised = !wasRaised;
      onChange?.(phrase);
    },
  };
}
