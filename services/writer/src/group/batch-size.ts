import type { SourceMessage } from '../protocol/row-batch.ts';

/** The factor by which the size grows after each success. */
const GROWTH = 1.25;

/** How much is stored at once: half as much after a failure, more again after each success. */
export class BatchSize {
  readonly #bytesMax: number;
  #bytes: number;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
    this.#bytes = bytesMax;
  }

  /** Returns as many of the messages as may be stored at once, at least one. */
  firstOf(messages: readonly SourceMessage[]): readonly SourceMessage[] {
    let count = 0;
    for (let sum = 0; count < messages.length; count += 1) {
      sum += sizeOf(messages[count] as SourceMessage);
      if (count > 0 && sum > this.#bytes) break;
    }
    return messages.slice(0, count);
  }

  worked(): void {
    this.#bytes = Math.min(this.#bytesMax, this.#bytes * GROWTH);
  }

  failed(messages: readonly SourceMessage[]): void {
    this.#bytes = Math.max(1, bytesOf(messages) / 2);
  }
}

/** Returns the size of messages, in bytes of rows. */
export function bytesOf(messages: readonly SourceMessage[]): number {
  return messages.reduce((sum, message) => sum + sizeOf(message), 0);
}

function sizeOf({ message }: SourceMessage): number {
  return message.value?.length ?? 0;
}
