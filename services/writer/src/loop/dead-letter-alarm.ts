/** The time over which dead letters are compared with all rows, in milliseconds. */
const WINDOW_MS = 5 * 60_000;

const SHARE_MAX = 0.01;

/** So few dead letters never raise the alarm: where little traffic comes in, a few rows soon exceed the share. */
const DEAD_LETTERS_MIN = 100;

/** Raised while so many rows cannot be stored that something else than the rows is probably wrong. */
export interface DeadLetterAlarm {
  count(rows: number, dead: number): void;
  /**
   * Returns a short phrase while more than 1 % of the rows of the last five minutes, and more than a hundred, are dead
   * letters, else `undefined`.
   */
  raised(): string | undefined;
}

export interface DeadLetterAlarmOptions {
  /** Called with the phrase when the alarm is raised, and with `undefined` when it has ended, at the next count. */
  readonly onChange?: (raised: string | undefined) => void;
  /** Default: a clock that nobody sets. */
  readonly now?: () => number;
}

export function createDeadLetterAlarm({
  onChange,
  now = () => performance.now(),
}: DeadLetterAlarmOptions = {}): DeadLetterAlarm {
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
