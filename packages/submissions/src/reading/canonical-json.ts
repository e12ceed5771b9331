import { EXACT_DIGITS } from '@sluice/shared/text/json';
import { JSON_DEPTH_MAX } from './json-object.ts';

/** What reading returns when a text is not canonical, or no JSON at all: the caller parses it then. */
export const NOT_CANONICAL = -1;

/**
 * With more names, an object is not read: each name is compared with the names before it. At worst, with names made for it,
 * a byte is compared with 32 others.
 */
const NAMES_MAX = 64;

/** How many names all open objects may have together: as many levels as are accepted, each with the most names. */
const OPEN_NAMES_MAX = JSON_DEPTH_MAX * NAMES_MAX;

/**
 * The names of the open objects: where they begin, and their length with three of their bytes, in which most names differ.
 * All readers share this: none of them waits while it reads.
 */
const nameStarts = new Int32Array(OPEN_NAMES_MAX);
const nameKeys = new Int32Array(OPEN_NAMES_MAX);

/** JavaScript writes numbers below 0.000001 with an exponent. */
const LEADING_ZEROS_MAX = 5;

const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;

/** Bytes that end the plain part of a string: its end, escapes, and control characters, which JSON does not allow. */
const SPECIAL = new Uint8Array(256).fill(1, 0, 0x20);
SPECIAL[QUOTE] = 1;
SPECIAL[0x5c] = 1;

const WORDS: Readonly<Record<number, Uint8Array>> = Object.fromEntries(
  ['true', 'false', 'null'].map((word) => [word.charCodeAt(0), Buffer.from(word)]),
);

/**
 * Reads JSON that JSON.parse and JSON.stringify would return as it is, byte for byte. Such a text need not be parsed to be
 * checked and stored: it is its own copy. Canonical here means:
 *
 * - no white space between tokens, and no escapes in strings;
 * - no name twice in an object, and none that begins with a digit, which JavaScript would move to the front;
 * - numbers of at most {@link EXACT_DIGITS} digits without exponent, superfluous zeros or negative zero.
 *
 * What most producers send is canonical. Everything else has to be parsed; so does what is not worth telling apart here.
 * The bytes must be UTF-8.
 */
export class CanonicalJson {
  readonly #bytes: Uint8Array;
  /** How many names the open objects have so far. */
  #open = 0;
  #values = 0;
  #depth = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** How many values objects and arrays that were read hold at most, themselves included. */
  get values(): number {
    return this.#values;
  }

  /** Levels of objects and arrays that were read. */
  get depth(): number {
    return this.#depth;
  }

  /** Forgets what was read so far. */
  restart(): void {
    this.#open = 0;
    this.#values = 0;
    this.#depth = 0;
  }

  /** Reads the value that begins at an offset, with {@link JSON_DEPTH_MAX} levels at most; returns the offset after it. */
  value(at: number): number {
    return this.#value(at, 1);
  }

  /** @param level the level of the value, if it is an object or an array: from 1 */
  #value(at: number, level: number): number {
    const byte = this.#bytes[at] as number;
    if (byte === QUOTE) return this.string(at);
    if (byte === 0x7b) return this.#object(at, level);
    if (byte === 0x5b) return this.#array(at, level);
    return byte === MINUS || (byte >= ZERO && byte <= NINE) ? this.#number(at) : this.#word(at, byte);
  }

  #object(start: number, level: number): number {
    const bytes = this.#bytes;
    if (!this.#enter(level)) return NOT_CANONICAL;
    const first = this.#open;
    let at = start + 1;
    if (bytes[at] === 0x7d) return at + 1;
    for (;;) {
      at = this.#name(at, first);
      if (at < 0) return at;
      at = this.#value(at, level + 1);
      if (at < 0) return at;
      const next = bytes[at];
      at += 1;
      if (next === COMMA) {
        this.#values += 1;
        continue;
      }
      this.#open = first;
      return next === 0x7d ? at : NOT_CANONICAL;
    }
  }

  /** Counts an object or array. Returns false when it is too deep. */
  #enter(level: number): boolean {
    this.#values += 1;
    if (level > this.#depth) this.#depth = level;
    return level <= JSON_DEPTH_MAX;
  }

  /** Reads the string that begins at an offset, and returns the offset after its closing quote. */
  string(start: number): number {
    const bytes = this.#bytes;
    let at = start + 1;
    while (at < bytes.length && SPECIAL[bytes[at] as number] === 0) at += 1;
    return bytes[at] === QUOTE ? at + 1 : NOT_CANONICAL;
  }

  /** Reads a name and its colon. `first` is the index of the first name of its object. */
  #name(start: number, first: number): number {
    const bytes = this.#bytes;
    const initial = bytes[start + 1] as number;
    if (bytes[start] !== QUOTE || (initial >= ZERO && initial <= NINE)) return NOT_CANONICAL;
    const end = this.string(start);
    if (end < 0 || bytes[end] !== COLON) return NOT_CANONICAL;
    const index = this.#open;
    if (index - first === NAMES_MAX || index === OPEN_NAMES_MAX) return NOT_CANONICAL;
    const middle = bytes[(start + end) >> 1] as number;
    const key = ((end - start) << 24) ^ (initial << 16) ^ (middle << 8) ^ (bytes[end - 2] as number);
    for (let other = first; other < index; other += 1) {
      if (nameKeys[other] === key && this.#isSameName(nameStarts[other] as number, start)) return NOT_CANONICAL;
    }
    nameStarts[index] = start;
    nameKeys[index] = key;
    this.#open = index + 1;
    return end + 1;
  }

  /** Compares two names of the same length up to the closing quote. */
  #isSameName(one: number, other: number): boolean {
    const bytes = this.#bytes;
    for (let index = 1; bytes[one + index] !== QUOTE; index += 1) {
      if (bytes[one + index] !== bytes[other + index]) return false;
    }
    return true;
  }

  #array(start: number, level: number): number {
    const bytes = this.#bytes;
    if (!this.#enter(level)) return NOT_CANONICAL;
    let at = start + 1;
    if (bytes[at] === 0x5d) return at + 1;
    for (;;) {
      at = this.#value(at, level + 1);
      if (at < 0) return at;
      const next = bytes[at];
      at += 1;
      if (next === COMMA) {
        this.#values += 1;
        continue;
      }
      return next === 0x5d ? at : NOT_CANONICAL;
    }
  }

  #number(start: number): number {
    const bytes = this.#bytes;
    const isNegative = bytes[start] === MINUS;
    const whole = isNegative ? start + 1 : start;
    let at = this.#digits(whole);
    const hasLeadingZero = bytes[whole] === ZERO;
    if (at === whole || (hasLeadingZero && at > whole + 1)) return NOT_CANONICAL;
    if (bytes[at] === POINT) {
      const fraction = at + 1;
      at = this.#digits(fraction);
      if (at === fraction || bytes[at - 1] === ZERO) return NOT_CANONICAL;
      if (hasLeadingZero && this.#isTiny(fraction)) return NOT_CANONICAL;
    } else if (isNegative && hasLeadingZero) return NOT_CANONICAL;
    const next = bytes[at] as number;
    return at - whole > EXACT_DIGITS || next === 0x65 || next === 0x45 ? NOT_CANONICAL : at;
  }

  #digits(start: number): number {
    const bytes = this.#bytes;
    let at = start;
    while ((bytes[at] as number) >= ZERO && (bytes[at] as number) <= NINE) at += 1;
    return at;
  }

  #isTiny(fraction: number): boolean {
    for (let zeros = 0; zeros <= LEADING_ZEROS_MAX; zeros += 1) {
      if (this.#bytes[fraction + zeros] !== ZERO) return false;
    }
    return true;
  }

  #word(start: number, initial: number): number {
    const word = WORDS[initial];
    if (word === undefined) return NOT_CANONICAL;
    for (let index = 1; index < word.length; index += 1) {
      if (this.#bytes[start + index] !== word[index]) return NOT_CANONICAL;
    }
    return start + word.length;
  }
}
