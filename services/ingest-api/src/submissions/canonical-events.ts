import { EVENT_IDENTIFIERS } from '@sluice/shared/rows';
import { CanonicalJson, NOT_CANONICAL } from './canonical-json.ts';
import { acceptsTime, emptyEvent } from './event-parser.ts';
import { JSON_DEPTH_MAX } from './json-object.ts';
import type { SubmittedEvent } from './submission.ts';
import { EVENT_NAME_LENGTH_MAX, IDENTIFIER_LENGTH_MAX, JSON_VALUES_MAX } from './submission-limits.ts';

interface Field {
  readonly field: keyof SubmittedEvent;
  readonly name: Buffer;
  /** Tells the fields that an event has so far. */
  readonly bit: number;
}

const FIELDS = [
  ...(['event', 'type', 'uuid', 'timestamp', 'properties', 'context', 'traits'] as const),
  ...EVENT_IDENTIFIERS.map(({ field }) => field),
].map((field, index): Field => ({ field, name: Buffer.from(field), bit: 1 << index }));

/** The fields by the length of the name and its first byte. */
const FIELDS_BY_KEY = Map.groupBy(FIELDS, ({ name }) => keyOf(name.length, name[0] as number));

const TRACK = Buffer.from('"track"');

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const DASH = 0x2d;
const END_OF_OBJECT = 0x7d;
const UUID_LENGTH = 36;
const TIMESTAMP_LENGTH = '2026-03-01T12:00:00.000Z'.length;

/** 1 for the digits of a hexadecimal number in lower case. */
const HEX_DIGITS = new Uint8Array(256);
for (const digit of '0123456789abcdef') HEX_DIGITS[digit.charCodeAt(0)] = 1;

export interface CanonicalEventLimits {
  /** The largest event in bytes. */
  readonly eventBytesMax: number;
  /** The latest timestamp that is accepted, in milliseconds since 1970. */
  readonly timestampMsMax: number;
}

/**
 * Reads valid events out of a body without parsing them, as long as they are canonical (see {@link CanonicalJson}): in one
 * pass over their bytes, which creates no values but the fields of the event. Any other event, and any that is not valid,
 * is left to event-parser.ts, which returns the same for a canonical one.
 */
export class CanonicalEvents {
  readonly #body: Buffer;
  readonly #limits: CanonicalEventLimits;
  readonly #json: CanonicalJson;
  #end = 0;

  /** @param body UTF-8 */
  constructor(body: Buffer, limits: CanonicalEventLimits) {
    this.#body = body;
    this.#limits = limits;
    this.#json = new CanonicalJson(body);
  }

  /** The offset after the event that was read last. */
  get end(): number {
    return this.#end;
  }

  /** Returns the event that begins at an offset; `undefined` when it has to be parsed. */
  read(start: number): SubmittedEvent | undefined {
    const body = this.#body;
    if (body[start] !== 0x7b) return undefined;
    this.#json.restart();
    const event = emptyEvent();
    let found = 0;
    let at = start + 1;
    for (;;) {
      const field = this.#field(at);
      // A field that comes twice is parsed, too.
      if (field === undefined || (found & field.bit) !== 0) return undefined;
      found |= field.bit;
      at = this.#value(event, field.field, at + field.name.length + 3);
      if (at < 0) return undefined;
      const next = body[at];
      at += 1;
      if (next === COMMA) continue;
      if (next !== END_OF_OBJECT) return undefined;
      break;
    }
    this.#end = at;
    const { eventBytesMax, timestampMsMax } = this.#limits;
    const isSmall = at - start <= eventBytesMax && this.#json.values <= JSON_VALUES_MAX / 2;
    return isSmall && event.event !== '' && acceptsTime(event, timestampMsMax) ? event : undefined;
  }

  /** Returns the field whose name and colon begin at an offset. */
  #field(at: number): Field | undefined {
    const body = this.#body;
    if (body[at] !== QUOTE) return undefined;
    let end = at + 1;
    while (body[end] !== QUOTE && end < body.length) end += 1;
    if (body[end + 1] !== COLON) return undefined;
    const fields = FIELDS_BY_KEY.get(keyOf(end - at - 1, body[at + 1] as number));
    return fields?.find(({ name }) => this.#has(name, at + 1));
  }

  #has(bytes: Uint8Array, at: number): boolean {
    for (let index = 0; index < bytes.length; index += 1) if (this.#body[at + index] !== bytes[index]) return false;
    return true;
  }

  /** Sets a field of the event, and returns the offset after its value. */
  #value(event: SubmittedEvent, field: Field['field'], at: number): number {
    const json = this.#json;
    switch (field) {
      case 'properties':
      case 'context':
      case 'traits': {
        const end = this.#body[at] === 0x7b ? json.object(at, JSON_DEPTH_MAX) : NOT_CANONICAL;
        if (end >= 0) event[field] = this.#text(at, end);
        return end;
      }
      case 'uuid':
        if (!this.#isUuid(at)) return NOT_CANONICAL;
        event.uuid = this.#body.toString('latin1', at + 1, at + 1 + UUID_LENGTH);
        return at + UUID_LENGTH + 2;
      case 'timestamp': {
        const ms = this.#timestamp(at);
        if (ms === undefined) return NOT_CANONICAL;
        event.timestamp = ms;
        return at + TIMESTAMP_LENGTH + 2;
      }
      case 'type':
        if (!this.#has(TRACK, at)) return NOT_CANONICAL;
        event.type = 'track';
        return at + TRACK.length;
      default: {
        const lengthMax = field === 'event' ? EVENT_NAME_LENGTH_MAX : IDENTIFIER_LENGTH_MAX;
        const end = this.#body[at] === QUOTE ? json.string(at) : NOT_CANONICAL;
        // At most as many characters as bytes.
        if (end < at + 3 || end - at - 2 > lengthMax) return NOT_CANONICAL;
        event[field] = this.#text(at + 1, end - 1);
        return end;
      }
    }
  }

  #text(start: number, end: number): string {
    return this.#body.toString('utf8', start, end);
  }

  /** Whether a string with a UUID in lower case begins at an offset, of version 1 to 8 (RFC 9562). */
  #isUuid(start: number): boolean {
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
  #timestamp(start: number): number | undefined {
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
