/** A member of an object, by its place in the object's text. */
export interface FoundMember {
  readonly name: string;
  /** Offset of its name's quote. */
  readonly start: number;
  readonly valueStart: number;
  /** Offset after its value. */
  readonly end: number;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const START_OF_ARRAY = 0x5b;
const END_OF_ARRAY = 0x5d;
const START_OF_OBJECT = 0x7b;
const END_OF_OBJECT = 0x7d;

/**
 * Finds a few members in the text of an object without parsing the others. The text must be canonical (see
 * `CanonicalJson`): no white space between tokens, and no escapes.
 *
 *     new MemberFinder(['b']).find('{"a":{"b":1},"b":2}'); // one member: that with the value 2
 */
export class MemberFinder {
  /** By length: most names are told by it. */
  readonly #names: (readonly string[] | undefined)[] = [];

  constructor(names: readonly string[]) {
    for (const name of names) this.#names[name.length] = [...(this.#names[name.length] ?? []), name];
  }

  /** Returns the members at the top level that have one of the names, in their order. */
  find(text: string): FoundMember[] {
    const found: FoundMember[] = [];
    if (text.length === '{}'.length) return found;
    for (let start = 1; ; ) {
      const nameEnd = text.indexOf('"', start + 1);
      const valueStart = nameEnd + '":'.length;
      const end = endOfValue(text, valueStart);
      const name = this.#nameAt(text, start + 1, nameEnd);
      if (name !== undefined) found.push({ name, start, valueStart, end });
      if (text.charCodeAt(end) !== COMMA) return found;
      start = end + 1;
    }
  }

  /** Returns which of the names it is. */
  #nameAt(text: string, start: number, end: number): string | undefined {
    return this.#names[end - start]?.find((wanted) => text.startsWith(wanted, start));
  }
}

/** Returns the text of an object without one of its members. */
export function withoutMember(text: string, { start, end }: FoundMember): string {
  if (text.charCodeAt(end) === COMMA) return text.slice(0, start) + text.slice(end + 1);
  // The last member: what stands before it is a comma or the brace.
  const isOnly = start === 1;
  return text.slice(0, isOnly ? start : start - 1) + text.slice(end);
}

/** Returns the offset after the value that begins at `start`. */
function endOfValue(text: string, start: number): number {
  const first = text.charCodeAt(start);
  if (first === QUOTE) return text.indexOf('"', start + 1) + 1;
  let at = start;
  for (let level = 0; ; at += 1) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = text.indexOf('"', at + 1);
        break;
      case START_OF_ARRAY:
      case START_OF_OBJECT:
        level += 1;
        break;
      case END_OF_ARRAY:
      case END_OF_OBJECT:
        if (level === 0) return at;
        level -= 1;
        if (level === 0) return at + 1;
        break;
      case COMMA:
        if (level === 0) return at;
    }
  }
}
