const SHOWN_MS = 6_000;

/** Why a command is waiting: the last reason for which it tried again, if that was a moment ago. */
export class RecentTrouble {
  #last: { readonly reason: string; readonly at: number } | undefined;

  /** @param reason a phrase for people */
  note(reason: string): void {
    this.#last = { reason, at: performance.now() };
  }

  get reason(): string | undefined {
    return this.#last && performance.now() - this.#last.at < SHOWN_MS ? this.#last.reason : undefined;
  }
}
