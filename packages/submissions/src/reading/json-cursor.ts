import { EXACT_DIGITS } from '@sluice/shared/text/json';
import { CanonicalObjects } from './canonical-objects.ts';
import type { JsonSlice } from './json-slice.ts';

/** The text is not JSON. */
export class MalformedJson extends Error {
  override readonly name = 'MalformedJson';
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;

/** The kinds of bytes outside strings; 0 is any other. */
const WHITE_SPACE = 1;
const OPENING = 2;
const CLOSING = 3;
const STRING = 4;
const DIGIT = 5;
const EXPONENT = 6;
const SEPARATOR = 7;

const KINDS = new Uint8Array(256);
for (const [kind, characters] of [
  [WHITE_SPACE, ' \t\n\r'],
  [OPENING, '{['],
  [CLOSING, '}]'],
  [STRING, '"'],
  [DIGIT, '0123456789'],
  [EXPONENT, 'eE'],
  [SEPARATOR, ',:'],
] as const) {
  for (const character of characters) KINDS[character.charCodeAt(0)] = kind;
}

/**
 * Finds the offsets of the values in a JSON text, so that a large text can be parsed one value at a time. It reads each
 * byte once, and creates no values but those of {@link JsonCursor.read}. It does not check what is inside a value that it
 * skips: parsing the slice does.
 *
 *     const cursor = new JsonCursor(Buffer.from('{"a":[1,2]}'));
 *     for (const name of cursor.members()) cursor.skip();
 *     cursor.end();
 *
 * Every method throws {@link MalformedJson}.
 */
export class JsonCursor {
  readonly #bytes: Buffer;
  readonly #objects: CanonicalObjects;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#objects = new CanonicalObjects(bytes);
  }

  /** Whether the next value is an object. */
  get atObject(): boolean {
    return this.#peek() === 0x7b;
  }

  /** Whether the next value is an array. */
  get atArray(): boolean {
    return this.#peek() === 0x5b;
  }

  /** The names of the object's members. Skip or read a member's value before the next name. */
  *members(): Generator<JsonSlice, void> {
    this.#take(0x7b);
    if (this.#peek() === 0x7d) {
      this.#at += 1;
      return;
    }
    for (;;) {
      if (this.#peek() !== QUOTE) throw new MalformedJson();
      const name = this.skip();
      this.#take(COLON);
      yield name;
      if (this.#takeEither(COMMA, 0x7d)) return;
    }
  }

  /** The array's elements, with their members where they have canonical text. */
  *elements(): Generator<JsonSlice, void> {
    this.#take(0x5b);
    if (this.#peek() === 0x5d) {
      this.#at += 1;
      return;
    }
    for (;;) {
      yield this.read();
      if (this.#takeEither(COMMA, 0x5d)) return;
    }
  }

  /** Skips the next value, and reads its members if it is an object with canonical text. */
  read(): JsonSlice {
    this.#peek();
    const object = this.#objects.read(this.#at);
    if (object === undefined) return this.skip();
    this.#at = object.end;
    return object;
  }

  /** Skips the next value. */
  skip(): JsonSlice {
    const bytes = this.#bytes;
    this.#peek();
    const start = this.#at;
    let at = start;
    let level = 0;
    let depth = 0;
    let values = 1;
    let whiteSpace = 0;
    let needsExactParser = false;
    let digits = 0;
    let escaped = false;
    scan: for (; at < bytes.length; at += 1) {
      const kind = KINDS[bytes[at] as number];
      switch (kind) {
        case DIGIT:
          digits += 1;
          if (digits > EXACT_DIGITS) needsExactParser = true;
          continue;
        case WHITE_SPACE:
          if (level === 0) break scan;
          whiteSpace += 1;
          break;
        case OPENING:
          level += 1;
          if (level > depth) depth = level;
          values += 1;
          break;
        case CLOSING:
          if (level === 0) break scan;
          level -= 1;
          if (level > 0) break;
          at += 1;
          break scan;
        case STRING: {
          const end = endOfString(bytes, at);
          escaped = end < 0;
          at = escaped ? -end - 1 : end - 1;
          if (level === 0) {
            at += 1;
            break scan;
          }
          break;
        }
        case SEPARATOR:
          if (level === 0) break scan;
          if (bytes[at] === COMMA) values += 1;
          else if (escaped) needsExactParser = true;
          escaped = false;
          break;
        case EXPONENT:
          // The words "true" and "false" hold an "e", too, but never after a digit.
          if (digits > 0) needsExactParser = true;
          break;
      }
      // A decimal point does not end a number.
      if (bytes[at] !== 0x2e) digits = 0;
    }
    if (level > 0 || at === start) throw new MalformedJson();
    this.#at = at;
    return { start, end: at, size: at - start - whiteSpace, depth, values, needsExactParser };
  }

  /** Checks that nothing follows. */
  end(): void {
    if (this.#peek() !== undefined) throw new MalformedJson();
  }

  /** Skips white space, and returns the next byte. */
  #peek(): number | undefined {
    const bytes = this.#bytes;
    while (this.#at < bytes.length && KINDS[bytes[this.#at] as number] === WHITE_SPACE) this.#at += 1;
    return bytes[this.#at];
  }

  #take(byte: number): void {
    if (this.#peek() !== byte) throw new MalformedJson();
    this.#at += 1;
  }

  /** Skips `separator` or `end`, and returns whether it was `end`. */
  #takeEither(separator: number, end: number): boolean {
    const next = this.#peek();
    if (next !== separator && next !== end) throw new MalformedJson();
    this.#at += 1;
    return next === end;
  }
}

/** Returns the offset after the string that begins at `start`, as a negative number when the string has an escape. */
function endOfString(bytes: Uint8Array, start: number): number {
  let escaped = false;
  for (let at = start + 1; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) return escaped ? -(at + 1) : at + 1;
    if (byte === BACKSLASH) {
      escaped = true;
      at += 1;
    }
  }
  throw new MalformedJson();
}
