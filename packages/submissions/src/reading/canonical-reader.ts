import { CanonicalJson, NOT_CANONICAL } from './canonical-json.ts';
import { JSON_DEPTH_MAX } from './json-object.ts';
import { JSON_VALUES_MAX } from './submission-limits.ts';

/** A field that an object may have. */
export interface Field<Name extends string> {
  readonly field: Name;
  readonly name: Buffer;
  /** Tells the fields that an object has so far. */
  readonly bit: number;
}

/** Fields by the length of their name and its first byte. */
export type Fields<Name extends string> = ReadonlyMap<number, readonly Field<Name>[]>;

/** @param names at most 31 */
export function fieldsOf<const Name extends string>(names: readonly Name[]): Fields<Name> {
  const fields = names.map((field, index) => ({ field, name: Buffer.from(field), bit: 1 << index }));
  return Map.groupBy(fields, ({ name }) => keyOf(name.length, name[0] as number));
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const END_OF_OBJECT = 0x7d;
const COLON = 0x3a;
const DASH = 0x2d;
export const UUID_LENGTH = 36;
export const TIMESTAMP_LENGTH = '2026-03-01T12:00:00.000Z'.length;

/** 1 for the digits of a hexadecimal number in lower case. */
const HEX_DIGITS = new Uint8Array(256);
for (const digit of '0123456789abcdef') HEX_DIGITS[digit.charCodeAt(0)] = 1;

export interface CanonicalLimits {
  /** The largest object in bytes. */
  readonly bytesMax: number;
  /** The latest timestamp that is accepted, in milliseconds since 1970. */
  readonly timestampMsMax: number;
}

/**
 * Reads objects out of a body without parsing them, as long as they are canonical (see {@link CanonicalJson}): in one pass
 * over their bytes, which creates no values but their fields. Any other object is left to a parser, which must return the
 * same for a canonical one.
 */
export abstract class CanonicalReader<Element extends object, Name extends string> {
  protected readonly limits: CanonicalLimits;
  readonly #body: Buffer;
  readonly #json: CanonicalJson;
  readonly #fields: Fields<Name>;
  #end = 0;

  /** @param body UTF-8 */
  constructor(body: Buffer, fields: Fields<Name>, limits: CanonicalLimits) {
    this.#body = body;
    this.#json = new CanonicalJson(body);
    this.#fields = fields;
    this.limits = limits;
  }

  /** The offset after the object that was read last. */
  get end(): number {
    return this.#end;
  }

  /** Returns the object that begins at an offset; `undefined` when it has to be parsed. */
  read(start: number): Element | undefined {
    const body = this.#body;
    if (body[start] !== 0x7b) return undefined;
    this.#json.restart();
    const element = this.create();
    let found = 0;
    let at = start + 1;
    for (;;) {
      const field = this.#field(at);
      // A field that comes twice is parsed, too.
      if (field !== undefined && (found & field.bit) !== 0) return undefined;
      found |= field?.bit ?? 0;
      at = field ? this.set(element, field.field, at + field.name.length + 3) : this.pass(at);
      if (at < 0) return undefined;
      const next = body[at];
      at += 1;
      if (next === COMMA) continue;
      if (next !== END_OF_OBJECT) return undefined;
      break;
    }
    this.#end = at;
    const isSmall = at - start <= this.limits.bytesMax && this.#json.values <= JSON_VALUES_MAX / 2;
    return isSmall && this.finish(element, found) ? element : undefined;
  }

  /** Returns an object without fields. */
  protected abstract create(): Element;

  /** Sets a field, and returns the offset after its value. */
  protected abstract set(element: Element, field: Name, at: number): number;

  /** Passes a field of another name that begins at an offset, and returns the offset after its value. */
  protected abstract pass(at: number): number;

  /**
   * Does what is left once all fields are set.
   *
   * @param found the bits of the fields that the object has
   * @returns whether the object is valid
   */
  protected abstract finish(element: Element, found: number): boolean;

  /** Passes a field with any canonical value. */
  protected passAny(at: number): number {
    const value = this.#afterName(at);
    return value < 0 ? value : this.#json.value(value, JSON_DEPTH_MAX);
  }

  /** Returns the offset after the colon of the name that begins at an offset. */
  #afterName(at: number): number {
    const body = this.#body;
    if (body[at] !== QUOTE) return NOT_CANONICAL;
    const end = this.#json.string(at);
    return end > 0 && body[end] === COLON ? end + 1 : NOT_CANONICAL;
  }

  /** Returns the field whose name and colon begin at an offset. */
  #field(at: number): Field<Name> | undefined {
    const body = this.#body;
    if (body[at] !== QUOTE) return undefined;
    let end = at + 1;
    while (body[end] !== QUOTE && end < body.length) end += 1;
    if (body[end + 1] !== COLON) return undefined;
    const candidates = this.#fields.get(keyOf(end - at - 1, body[at + 1] as number));
    return candidates?.find(({ name }) => this.has(name, at + 1));
  }

  /** Whether the bytes stand at an offset. */
  protected has(bytes: Uint8Array, at: number): boolean {
    for (let index = 0; index < bytes.length; index += 1) if (this.#body[at + index] !== bytes[index]) return false;
    return true;
  }

  /** Returns the bytes of an offset to another one as text. */
  protected text(start: number, end: number): string {
    return this.#body.toString('utf8', start, end);
  }

  /** Reads the object that begins at an offset, and returns the offset after it. */
  protected object(at: number): number {
    return this.#body[at] === 0x7b ? this.#json.object(at, JSON_DEPTH_MAX) : NOT_CANONICAL;
  }

  /** Reads the text that begins at an offset, not empty and of at most so many bytes; returns the offset after it. */
  protected string(at: number, bytesMax: number): number {
    const end = this.#body[at] === QUOTE ? this.#json.string(at) : NOT_CANONICAL;
    return end < at + 3 || end - at - 2 > bytesMax ? NOT_CANONICAL : end;
  }

  /** Whether a string with a UUID in lower case begins at an offset, of version 1 to 8 (RFC 9562). */
  protected isUuid(start: number): boolean {
    const body = this.#body;
    if (body[start] !== QUOTE || body[start + UUID_LENGTH + 1] !== QUOTE) return false;
    for (let index = 0; index < UUID_LENGTH; index += 1) {
      const byte = body[start + 1 + index] as number;
      const isDash = index === 8 || index === 13 || index === 18 || index === 23;
      if (isDash ? byte !== DASH : HEX_DIGITS[byte] !== 1) return false;
    }
    const version = body[start + 15] as number;
    const variant = body[start + 20] as number;
    return (
      version >= 0x31 &&
      version <= 0x38 &&
      (variant === 0x38 || variant === 0x39 || variant === 0x61 || variant === 0x62)
    );
  }

  /** Returns the time of a string such as "2026-03-01T12:00:00.000Z" at an offset, in milliseconds since 1970. */
  protected timestamp(start: number): number | undefined {
    const body = this.#body;
    if (body[start] !== QUOTE || body[start + TIMESTAMP_LENGTH + 1] !== QUOTE) return undefined;
    const at = start + 1;
    if (body[at + 4] !== DASH || body[at + 7] !== DASH || body[at + 10] !== 0x54 || body[at + 13] !== COLON)
      return undefined;
    if (body[at + 16] !== COLON || body[at + 19] !== 0x2e || body[at + 23] !== 0x5a) return undefined;
    const [year, month, day] = [this.#number(at, 4), this.#number(at + 5, 2), this.#number(at + 8, 2)];
    const [hour, minute, second] = [this.#number(at + 11, 2), this.#number(at + 14, 2), this.#number(at + 17, 2)];
    const ms = this.#number(at + 20, 3);
    // Date.UTC takes years before 100 for others.
    if (year < 100 || month < 1 || month > 12 || day < 1 || day > 28 + 3) return undefined;
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59 || ms < 0) return undefined;
    const time = Date.UTC(year, month - 1, day, hour, minute, second, ms);
    // A day that the month does not have is in the next month.
    return day <= 28 || new Date(time).getUTCDate() === day ? time : undefined;
  }

  /** Returns a number of so many digits; -1 when one of the bytes is no digit. */
  #number(start: number, digits: number): number {
    let number = 0;
    for (let at = start; at < start + digits; at += 1) {
      const digit = (this.#body[at] as number) - 0x30;
      if (!(digit >= 0 && digit <= 9)) return -1;
      number = number * 10 + digit;
    }
    return number;
  }
}

function keyOf(length: number, firstByte: number): number {
  return length * 256 + firstByte;
}
