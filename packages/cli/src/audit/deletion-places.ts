import { KEY_BYTES, keyOf, sliceOf } from './identifiers.ts';
import { CHANGE_BYTES, DELETED_USER, readChange } from './records.ts';
import type { Slices } from './slices.ts';

/** Where deletions stand in the log: each partition of the events has each of them. */
export class DeletionPlaces {
  readonly #changes: Slices;
  readonly #count: number;
  /** The slice that was read last. */
  #slice: { readonly index: number; readonly log: Buffer } | undefined;

  constructor(changes: Slices, count: number) {
    this.#changes = changes;
    this.#count = count;
  }

  /** Returns the offset of the last deletion of a person in a partition of the events; -1 where there is none. */
  lastOf(workspace: string, person: string, partition: number): number {
    const key = keyOf(workspace, 'user', person);
    const log = this.#read(sliceOf(key, 0, this.#count));
    let last = -1;
    for (let at = 0; at < log.length; at += CHANGE_BYTES) {
      if (key.compare(log, at, at + KEY_BYTES) !== 0) continue;
      const change = readChange(log, at);
      if (change.week === DELETED_USER && change.partition === partition) last = Math.max(last, change.offset);
    }
    return last;
  }

  #read(index: number): Buffer {
    if (this.#slice?.index !== index) this.#slice = { index, log: this.#changes.read(index) };
    return this.#slice.log;
  }
}
