/** Gives the same signal for the same signals as before: each of these would keep a new one for as long as it lasts. */
export class AnySignal {
  #signals: readonly AbortSignal[] = [];
  #any: AbortSignal | undefined;

  /** Returns a signal that aborts when any of some signals does. */
  of(signals: readonly AbortSignal[]): AbortSignal {
    const [first] = signals;
    if (first && signals.length === 1) return first;
    const isSame = signals.length === this.#signals.length && signals.every((one, at) => one === this.#signals[at]);
    this.#any = isSame && this.#any ? this.#any : AbortSignal.any([...signals]);
    this.#signals = signals;
    return this.#any;
  }
}
