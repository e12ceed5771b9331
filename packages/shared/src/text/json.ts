declare global {
  interface JSON {
    /** An object that JSON.stringify writes as `text`, which is one JSON value other than an object or array. */
    rawJSON(text: string): RawNumber;
    isRawJSON(value: unknown): value is RawNumber;
  }
}

/** A number that a 64-bit float cannot hold exactly, from {@link parseExactJson}. JSON.stringify writes its text. */
export interface RawNumber {
  readonly rawJSON: string;
}

/** The parser recurses once for each level. */
const DEPTH_MAX = 1_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/**
 * JSON.parse without its bug: V8 confuses a name that is written with an escape (`"\n"`) with one that an earlier text
 * had in the same place (`"\\"`), so that one producer's names could change another's
 * (https://github.com/nodejs/node/issues/63785). A text with escapes is therefore parsed here, in linear time.
 *
 * @throws {SyntaxError} when the text is not JSON
 * @throws {RangeError} when a text with escapes nests deeper than 1,000 levels
 */
export function parseJson(text: string): unknown {
  return text.includes('\\') ? new JsonParser(text, Number).parse() : JSON.parse(text);
}

/**
 * {@link parseJson} that keeps every digit: a finite number that a 64-bit float cannot hold exactly, such as
 * `1729384756102938475`, becomes a {@link RawNumber}. It takes about five times as long as JSON.parse.
 *
 * @throws {SyntaxError | RangeError} as {@link parseJson} does
 */
export function parseExactJson(text: string): unknown {
  return new JsonParser(text, exactNumber).parse();
}

/** A number of at most this many digits is the same after it was a 64-bit float, unless it is very large or very small. */
export const EXACT_DIGITS = 15;
const ORDINARY_MIN = 1e-300;
const ORDINARY_MAX = 1e300;

function exactNumber(text: string): number | RawNumber {
  const value = Number(text);
  const size = Math.abs(value);
  if (text.length <= EXACT_DIGITS && size >= ORDINARY_MIN && size <= ORDINARY_MAX) return value;
  if (!Number.isFinite(value) || decimalOf(text) === decimalOf(String(value))) return value;
  return JSON.rawJSON(text);
}

/** Returns the digits and the exponent without leading and trailing zeros: the same for every spelling of a number. */
function decimalOf(text: string): string {
  const unsigned = text.startsWith('-') ? text.slice(1) : text;
  const [mantissa = '', exponent = '0'] = unsigned.toLowerCase().split('e');
  const [whole = '', fraction = ''] = mantissa.split('.');
  const digits = whole + fraction;
  let [start, end] = [0, digits.length];
  while (start < end && digits[start] === '0') start += 1;
  while (end > start && digits[end - 1] === '0') end -= 1;
  if (start === end) return '0';
  // The exponents of 64-bit floats are far too small for this sum to be rounded.
  return `${digits.slice(start, end)}e${Number(exponent) - fraction.length + digits.length - end}`;
}

class JsonParser {
  readonly #text: string;
  readonly #number: (text: string) => unknown;
  #at = 0;

  constructor(text: string, number: (text: string) => unknown) {
    this.#text = text;
    this.#number = number;
  }

  parse(): unknown {
    const value = this.#value(DEPTH_MAX);
    if (this.#next() !== undefined) throw this.#error();
    return value;
  }

  /** Skips white space, and returns the next character. */
  #next(): string | undefined {
    for (;;) {
      const character = this.#text[this.#at];
      if (character !== ' ' && character !== '\n' && character !== '\r' && character !== '\t') return character;
      this.#at += 1;
    }
  }

  #value(levels: number): unknown {
    if (levels === 0) throw new RangeError(`the JSON text is nested deeper than ${DEPTH_MAX} levels`);
    switch (this.#next()) {
      case '{':
        return this.#object(levels);
      case '[':
        return this.#array(levels);
      case '"':
        return this.#string();
      case 't':
        return this.#word('true', true);
      case 'f':
        return this.#word('false', false);
      case 'n':
        return this.#word('null', null);
      default:
        return this.#numeral();
    }
  }

  #object(levels: number): Record<string, unknown> {
    const object: Record<string, unknown> = {};
    this.#at += 1;
    if (this.#next() === '}') {
      this.#at += 1;
      return object;
    }
    for (;;) {
      if (this.#next() !== '"') throw this.#error();
      const name = this.#string();
      this.#take(':');
      const value = this.#value(levels - 1);
      // By assignment, __proto__ would set the prototype.
      if (name !== '__proto__') object[name] = value;
      else Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
      if (this.#take(',', '}') === '}') return object;
    }
  }

  #array(levels: number): unknown[] {
    const array: unknown[] = [];
    this.#at += 1;
    if (this.#next() === ']') {
      this.#at += 1;
      return array;
    }
    for (;;) {
      array.push(this.#value(levels - 1));
      if (this.#take(',', ']') === ']') return array;
    }
  }

  /** Skips one of the expected characters, and returns it. */
  #take(...expected: string[]): string {
    const character = this.#next();
    if (character === undefined || !expected.includes(character)) throw this.#error();
    this.#at += 1;
    return character;
  }

  #string(): string {
    const text = this.#text;
    const start = this.#at;
    let escaped = false;
    for (let at = start + 1; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) {
        this.#at = at + 1;
        return escaped ? (JSON.parse(text.slice(start, at + 1)) as string) : text.slice(start + 1, at);
      }
      if (code < 0x20) break;
      if (code === BACKSLASH) {
        escaped = true;
        at += 1;
      }
    }
    throw this.#error();
  }

  #word<Value>(word: string, value: Value): Value {
    if (!this.#text.startsWith(word, this.#at)) throw this.#error();
    this.#at += word.length;
    return value;
  }

  #numeral(): unknown {
    const start = this.#at;
    if (this.#text[this.#at] === '-') this.#at += 1;
    if (this.#text[this.#at] === '0') this.#at += 1;
    else this.#digits();
    if (this.#text[this.#at] === '.') {
      this.#at += 1;
      this.#digits();
    }
    const character = this.#text[this.#at];
    if (character === 'e' || character === 'E') {
      this.#at += 1;
      const sign = this.#text[this.#at];
      if (sign === '+' || sign === '-') this.#at += 1;
      this.#digits();
    }
    return this.#number(this.#text.slice(start, this.#at));
  }

  #digits(): void {
    const start = this.#at;
    for (let code = this.#code(); code >= 0x30 && code <= 0x39; code = this.#code()) this.#at += 1;
    if (this.#at === start) throw this.#error();
  }

  #code(): number {
    return this.#text.charCodeAt(this.#at);
  }

  #error(): SyntaxError {
    return new SyntaxError(`unexpected token at position ${this.#at} of the JSON text`);
  }
}
