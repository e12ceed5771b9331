/** A value inside a JSON text, found without parsing it. */
export interface JsonSlice {
  /** Offset of its first byte. */
  readonly start: number;
  /** Offset after its last byte. */
  readonly end: number;
  /** Bytes without the white space between tokens. */
  readonly size: number;
  /** Levels of objects and arrays; 0 for a string, a number and so on. */
  readonly depth: number;
  /** How many values it holds at most, itself included. */
  readonly values: number;
  /**
   * JSON.parse may misread it: a name has an escape, or a number may have more digits than a 64-bit float holds.
   * False positives are fine, false negatives are not.
   */
  readonly needsExactParser: boolean;
  /** The members of an object that was read at once, parsed but for those that are an `ObjectText`. */
  readonly members?: Readonly<Record<string, unknown>>;
}
