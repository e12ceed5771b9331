import { parseExactJson } from '@sluice/shared/text/json';
import { TOO_DEEP } from './json-object.ts';
import type { JsonSlice } from './json-slice.ts';
import { IDENTIFIER_LENGTH_MAX, JSON_VALUES_MAX } from './submission-limits.ts';

/** A field with more bytes is not parsed: as a text, whatever its escapes, it is longer than an identifier may be. */
const FIELD_BYTES_MAX = 12 * IDENTIFIER_LENGTH_MAX + 2;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** A value with more levels is not parsed: it has an error anyway, and the exact parser recurses. */
const DEPTH_PARSED_MAX = 500;

/** Returns the body without the byte order mark that it may begin with: RFC 8259 lets a parser ignore it. */
export function withoutByteOrderMark(body: Buffer): Buffer {
  return body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? body.subarray(3) : body;
}

/** Returns why a value must not be parsed, because it would take too much memory or time; `undefined` when it may be. */
export function parsingError({ depth, values }: JsonSlice): string | undefined {
  if (depth > DEPTH_PARSED_MAX) return TOO_DEEP;
  return values > JSON_VALUES_MAX ? `holds more than ${JSON_VALUES_MAX} values` : undefined;
}

/** @throws {SyntaxError} */
export function parseName(body: Buffer, slice: JsonSlice): string {
  return parseSlice(body, slice) as string;
}

/** A longer name, however it is written, is no field. */
const FIELD_NAME_BYTES_MAX = 200;

/**
 * Returns the name of a member; of a name that is too long for a field only the beginning, as it is written.
 *
 * @throws {SyntaxError}
 */
export function parseFieldName(body: Buffer, slice: JsonSlice): string {
  if (slice.size <= FIELD_NAME_BYTES_MAX) return parseName(body, slice);
  return body.toString('utf8', slice.start + 1, slice.start + FIELD_NAME_BYTES_MAX);
}

/** @throws {SyntaxError} */
export function parseSlice(body: Buffer, slice: JsonSlice): unknown {
  const { start, end, needsExactParser } = slice;
  if (isPlainString(body, slice)) return body.toString('utf8', start + 1, end - 1);
  const text = body.toString('utf8', start, end);
  return needsExactParser ? parseExactJson(text) : JSON.parse(text);
}

/** Whether the value is a string without escapes, which need not be parsed. */
function isPlainString(body: Buffer, { start, end }: JsonSlice): boolean {
  if (body[start] !== QUOTE || body[end - 1] !== QUOTE || end - start < 2) return false;
  for (let at = start + 1; at < end - 1; at += 1) {
    const byte = body[at] as number;
    if (byte < 0x20 || byte === QUOTE || byte === BACKSLASH) return false;
  }
  return true;
}

/**
 * Parses the value of a field. A value that is too large for any field is replaced by a small one with the same error.
 *
 * @throws {SyntaxError}
 */
export function parseFieldValue(body: Buffer, slice: JsonSlice): unknown {
  if (slice.size <= FIELD_BYTES_MAX && parsingError(slice) === undefined) return parseSlice(body, slice);
  switch (body[slice.start]) {
    case QUOTE:
      return ' '.repeat(FIELD_BYTES_MAX);
    case 0x5b:
      return [];
    case 0x7b:
      return {};
    default:
      return 0;
  }
}
