/** The time over which dead letters are compared with all rows, in milliseconds. */
const WINDOW_MS = 5 * 60_000;

const SHARE_MAX = 0.01;

/** So few dead letters never raise the alarm: where little traffic comes in, a few rows soon exceed the share. */
const DEAD_LETTERS_MIN = 100;

export interface DeadLetterAlarmOptions {
  /** Called with the phrase when the alarm is raised, and with `undefined` when it has ended, at the next count. */
  readonly onChange?: (raised: string | undefined) => void;
  /** Default: a clock that nobody sets. */
  readonly now?: () => number;
}

/** Raised while so many rows cannot be stored that something else than the rows is probably wrong. */
export class DeadLetterAlarm {
  readonly #onChange: DeadLetterAlarmOptions['onChange'];
  readonly #now: () => number;
  #counts: { readonly at: number; readonly rows: number; readonly deadLetters: number }[] = [];
  #wasRaised = false;

  constructor({ onChange, now = () => performance.now() }: DeadLetterAlarmOptions = {}) {
    this.#onChange = onChange;
    this.#now = now;
  }

  /** @param rows those that were stored */
  count(rows: number, deadLetters: number): void {
    this.#counts.push({ at: this.#now(), rows, deadLetters });
    const raised = this.raised();
    if ((raised !== undefined) === this.#wasRaised) return;
    this.#wasRaised = !this.#wasRaised;
    this.#onChange?.(raised);
  }

  /**
   * Returns a short phrase while more than 1 % of the rows of the last five minutes, and more than a hundred, are dead
   * letters, else `undefined`.
   */
  raised(): string | undefined {
    this.#counts = this.#counts.filter(({ at }) => at > this.#now() - WINDOW_MS);
    const rows = this.#counts.reduce((sum, counted) => sum + counted.rows + counted.deadLetters, 0);
    const deadLetters = this.#counts.reduce((sum, counted) => sum + counted.deadLetters, 0);
    if (deadLetters <= DEAD_LETTERS_MIN || deadLetters <= SHARE_MAX * rows) return undefined;
    return `${deadLetters} of the last ${rows} rows could not be stored: npm run dead-letters -- list`;
  }
}
