import { parseExactJson } from '@sluice/shared/json';
import type { JsonSlice } from './json-cursor.ts';
import { TOO_DEEP } from './json-object.ts';
import { IDENTIFIER_LENGTH_MAX, JSON_VALUES_MAX } from './submission-limits.ts';

/** A field with more bytes is not parsed: as a text, whatever its escapes, it is longer than an identifier may be. */
const FIELD_BYTES_MAX = 12 * IDENTIFIER_LENGTH_MAX + 2;

/** A value with more levels is not parsed: it has a fault anyway, and the exact parser recurses. */
const DEPTH_PARSED_MAX = 500;

/** Returns why a value must not be parsed, because it would take too much memory or time; `undefined` when it may be. */
export function parsingFault({ depth, values }: JsonSlice): string | undefined {
  if (depth > DEPTH_PARSED_MAX) return TOO_DEEP;
  return values > JSON_VALUES_MAX ? `holds more than ${JSON_VALUES_MAX} values` : undefined;
}

/** @throws {SyntaxError} */
export function parseName(body: Buffer, { start, end }: JsonSlice): string {
  return JSON.parse(body.toString('utf8', start, end)) as string;
}

/** @throws {SyntaxError} */
export function parseSlice(body: Buffer, { start, end, needsExactParser }: JsonSlice): unknown {
  const text = body.toString('utf8', start, end);
  return needsExactParser ? parseExactJson(text) : JSON.parse(text);
}

/**
 * Parses the value of a field. A value that is too large for any field is replaced by a small one with the same fault.
 *
 * @throws {SyntaxError}
 */
export function parseFieldValue(body: Buffer, slice: JsonSlice): unknown {
  if (slice.size <= FIELD_BYTES_MAX && parsingFault(slice) === undefined) return parseSlice(body, slice);
  switch (body[slice.start]) {
    case 0x22:
      return ' '.repeat(FIELD_BYTES_MAX);
    case 0x5b:
      return [];
    case 0x7b:
      return {};
    default:
      return 0;
  }
}
