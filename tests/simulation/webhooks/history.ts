/** A change that a client has asked for, from when to when; without an end, it may still happen. */
export interface Change {
  /** Undefined: nobody was told. */
  readonly value: string | undefined;
  readonly begunMs: number;
  endedMs: number | undefined;
}

/**
 * The changes of one value, by clients that do not know of each other. What is there in the end has to be the value of a change that
 * none follows: a change that was answered is undone by nothing but a later one.
 */
export class History {
  readonly #changes: Change[] = [];

  /** Notes that a change begins. @param value undefined where the server chooses it */
  begin(value: string | undefined, nowMs: number): Change {
    const change: Change = { value, begunMs: nowMs, endedMs: undefined };
    this.#changes.push(change);
    return change;
  }

  /** Notes that a change has ended as it was asked for. */
  end(change: Change, nowMs: number, value = change.value): void {
    this.#changes[this.#changes.indexOf(change)] = { ...change, value, endedMs: nowMs };
  }

  /** Notes that a change was refused: it has not happened. */
  drop(change: Change): void {
    this.#changes.splice(this.#changes.indexOf(change), 1);
  }

  has(value: string): boolean {
    return this.#changes.some((change) => change.value === value || change.value === undefined);
  }

  /** Whether this may be the value in the end. */
  mayEndWith(value: string): boolean {
    return this.#changes.some((change) => (change.value ?? value) === value && !this.#isFollowed(change));
  }

  #isFollowed({ endedMs }: Change): boolean {
    if (endedMs === undefined) return false;
    return this.#changes.some((later) => later.endedMs !== undefined && later.begunMs > endedMs);
  }

  /** Whether a value was replaced by a change that was answered before a time. */
  isOver(value: string, atMs: number): boolean {
    const own = this.#changes.filter((change) => (change.value ?? value) === value);
    const isReplaced = ({ endedMs }: Change) =>
      endedMs !== undefined &&
      this.#changes.some((later) => later.begunMs > endedMs && later.endedMs !== undefined && later.endedMs < atMs);
    return own.every(isReplaced);
  }

  describe(): string {
    const times = ({ value, begunMs, endedMs }: Change) =>
      `${value} ${Math.floor(begunMs)} to ${endedMs && Math.floor(endedMs)}`;
    return this.#changes.map(times).join(', ');
  }
}
