import { CanonicalJson } from './canonical-json.ts';
import { ObjectText } from './json-object.ts';
import type { JsonSlice } from './json-slice.ts';
import { JSON_VALUES_MAX } from './submission-limits.ts';

/** With more members, an object is not read: the members of all objects of a body are in memory together. */
const MEMBERS_MAX = 32;

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const START_OF_ARRAY = 0x5b;
const START_OF_OBJECT = 0x7b;
const END_OF_OBJECT = 0x7d;

/**
 * Reads objects whose text is canonical (see {@link CanonicalJson}) in one pass over their bytes: of their members, those
 * that are objects stay text, which can be stored as it is. To parse such a text and to encode it again would take longer
 * than everything else that is done to read an event. Any other object is left to JSON.parse.
 */
export class CanonicalObjects {
  readonly #body: Buffer;
  readonly #json: CanonicalJson;
  /** The names of members that were read last, by their index in the object: most objects of a body have the same names. */
  readonly #names: { readonly start: number; readonly end: number; readonly name: string }[] = [];

  /** @param body UTF-8 */
  constructor(body: Buffer) {
    this.#body = body;
    this.#json = new CanonicalJson(body);
  }

  /** Returns the object that begins at an offset, with its members; `undefined` when it has to be parsed. */
  read(start: number): JsonSlice | undefined {
    const body = this.#body;
    const json = this.#json;
    if (body[start] !== START_OF_OBJECT) return undefined;
    json.restart();
    const members: Record<string, unknown> = {};
    let at = start + 1;
    for (let count = 1; count <= MEMBERS_MAX; count += 1) {
      const colon = body[at] === QUOTE ? json.string(at) : -1;
      if (colon < 0 || body[colon] !== COLON) return undefined;
      const name = this.#name(count, at + 1, colon - 1);
      // The name comes twice, or every object of JavaScript has it: `__proto__`.
      if (members[name] !== undefined) return undefined;
      const end = json.value(colon + 1);
      if (end < 0 || body[colon + 1] === START_OF_ARRAY) return undefined;
      members[name] = this.#member(colon + 1, end);
      at = end + 1;
      if (body[end] === COMMA) continue;
      const values = json.values + count + 1;
      if (body[end] !== END_OF_OBJECT || values > JSON_VALUES_MAX) return undefined;
      return { start, end: at, size: at - start, depth: json.depth + 1, values, needsExactParser: false, members };
    }
    return undefined;
  }

  #name(index: number, start: number, end: number): string {
    const last = this.#names[index];
    if (last && this.#isSame(last.start, last.end, start, end)) return last.name;
    const name = this.#body.toString('utf8', start, end);
    this.#names[index] = { start, end, name };
    return name;
  }

  #isSame(start: number, end: number, otherStart: number, otherEnd: number): boolean {
    const body = this.#body;
    if (end - start !== otherEnd - otherStart) return false;
    for (let at = start; at < end; at += 1) if (body[at] !== body[otherStart + at - start]) return false;
    return true;
  }

  #member(start: number, end: number): unknown {
    const body = this.#body;
    switch (body[start]) {
      case QUOTE:
        return body.toString('utf8', start + 1, end - 1);
      case START_OF_OBJECT:
        return new ObjectText(body, start, end);
      default:
        return JSON.parse(body.toString('utf8', start, end));
    }
  }
}
