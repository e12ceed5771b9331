/** An operating system's process of a simulation: it can be killed and frozen. */
export class SimulatedProcess {
  readonly name: string;
  isDead = false;
  isFrozen = false;
  /** By how much the clock of its machine is ahead, in milliseconds. */
  clockAheadMs = 0;
  #waiting: (() => void)[] = [];

  constructor(name: string) {
    this.name = name;
  }

  /** Nothing of it happens any more. */
  kill(): void {
    this.isDead = true;
    this.#waiting = [];
  }

  freeze(): void {
    this.isFrozen = true;
  }

  /** Lets what came meanwhile happen, in order. @param schedule has it happen in a moment, as this process */
  thaw(schedule: (run: () => void) => void): void {
    this.isFrozen = false;
    const waiting = this.#waiting;
    this.#waiting = [];
    if (!this.isDead) for (const run of waiting) schedule(run);
  }

  whenThawed(run: () => void): void {
    this.#waiting.push(run);
  }
}
