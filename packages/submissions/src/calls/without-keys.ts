import type { CallForm } from './call.ts';
import { KEY_PROPERTIES } from './posthog/posthog-properties.ts';

/** A key that is this long is taken out of longer texts as well, such as an address. A shorter one may be a part of any word. */
const PART_CHARACTERS_MIN = 16;

/** Where calls have API keys, of whichever workspace: the names of members of the call, and of its properties. */
const KEY_NAMES: Readonly<Record<'posthog' | 'others', readonly (readonly string[])[]>> = {
  posthog: [KEY_PROPERTIES, KEY_PROPERTIES],
  others: [['writeKey'], []],
};

/**
 * No client puts more keys than this into a call. Each string is compared with all of them, so a call that has more is kept
 * without its strings.
 */
const OWN_KEYS_MAX = 16;

const ESCAPES: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

/**
 * Returns the text of a call without API keys: those that it has where its clients put one, and the given ones wherever they are, in
 * any spelling. They become empty texts. The text may be cut off, and what stands between its brackets need not be JSON.
 */
export function withoutKeys(text: string, form: CallForm, keys: readonly string[]): string {
  const names = KEY_NAMES[form === 'posthog' ? form : 'others'];
  const own = new Set<string>();
  new KeyScan(text, names, []).run((key) => own.add(key));
  return new KeyScan(text, names, own.size > OWN_KEYS_MAX ? 'all' : [...keys, ...own]).run(() => undefined);
}

/** Goes through the strings of a text once. */
class KeyScan {
  readonly #text: string;
  readonly #names: readonly (readonly string[])[];
  readonly #keys: readonly string[] | 'all';
  /** For each bracket that is open the name of the member before. */
  readonly #open: string[] = [];
  #name = '';
  #copied = '';
  /** Up to where the text is copied. */
  #copiedTo = 0;

  /** @param keys what strings must not have; `all`: anything */
  constructor(text: string, names: readonly (readonly string[])[], keys: readonly string[] | 'all') {
    this.#text = text;
    this.#names = names;
    this.#keys = keys === 'all' ? keys : keys.filter((key) => key !== '');
  }

  /** @param onKey called with each key that stands where keys do */
  run(onKey: (key: string) => void): string {
    const text = this.#text;
    for (let at = 0; at < text.length; ) {
      const character = text[at];
      if (character === '"') at = this.#string(at, onKey);
      else {
        if (character === '{' || character === '[') this.#open.push(this.#name);
        if (character === '}' || character === ']') this.#open.pop();
        at += 1;
      }
    }
    return this.#copied + text.slice(this.#copiedTo);
  }

  /** Reads a string, and its value if it is the name of a key. Returns the offset after it. */
  #string(start: number, onKey: (key: string) => void): number {
    const text = this.#text;
    const end = endOfString(text, start);
    const value = unescaped(text.slice(start + 1, end));
    this.#replace(start, end, value);
    const colon = afterSpace(text, end + 1);
    if (text[colon] !== ':') return end + 1;
    this.#name = value;
    const valueStart = afterSpace(text, colon + 1);
    if (!this.#isKey(value)) return valueStart;
    const valueEnd = endOfValue(text, valueStart);
    if (text[valueStart] === '"') onKey(unescaped(text.slice(valueStart + 1, endOfString(text, valueStart))));
    this.#copy(valueStart, valueEnd, '""');
    return valueEnd;
  }

  #isKey(name: string): boolean {
    const [, before] = this.#open;
    const isOfProperties = this.#open.length === 2 && before === 'properties';
    if (this.#open.length !== 1 && !isOfProperties) return false;
    return this.#names[isOfProperties ? 1 : 0]?.includes(name) === true;
  }

  #replace(start: number, end: number, value: string): void {
    let rest = this.#keys === 'all' ? '' : value;
    for (const key of this.#keys === 'all' ? [] : this.#keys) {
      if (key.length >= PART_CHARACTERS_MIN) rest = rest.replaceAll(key, '');
      else if (rest === key) rest = '';
      // The text may be cut off in the midst of a key.
      if (end === this.#text.length) rest = rest.slice(0, rest.length - beginningAtEnd(rest, key));
    }
    if (rest !== value) this.#copy(start, end + 1, JSON.stringify(rest));
  }

  #copy(start: number, end: number, instead: string): void {
    this.#copied += this.#text.slice(this.#copiedTo, start) + instead;
    this.#copiedTo = end;
  }
}

/** Returns with how many characters of the key's beginning the text ends. */
function beginningAtEnd(text: string, key: string): number {
  let length = Math.min(text.length, key.length);
  while (length > 0 && !text.endsWith(key.slice(0, length))) length -= 1;
  return length;
}

/** Returns the text of a string's content; what is no escape sequence stands for itself. */
function unescaped(content: string): string {
  if (!content.includes('\\')) return content;
  return content.replaceAll(/\\(?:u([0-9a-f]{4})|(.?))/gis, (_, hex: string | undefined, letter = '') =>
    hex === undefined ? (ESCAPES[letter] ?? letter) : String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

/** Returns the offset of the quote that ends a string; that of the end of the text if there is none. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] === '"') return at;
    if (text[at] === '\\') at += 1;
  }
  return text.length;
}

/** Returns the offset after a value. */
function endOfValue(text: string, start: number): number {
  let level = 0;
  for (let at = start; at < text.length; at += 1) {
    const character = text[at] as string;
    if (level === 0 && ',}]'.includes(character)) return at;
    if (character === '"') at = endOfString(text, at);
    if ('{['.includes(character)) level += 1;
    if ('}]'.includes(character)) level -= 1;
  }
  return text.length;
}

function afterSpace(text: string, start: number): number {
  let at = start;
  while (at < text.length && ' \t\n\r'.includes(text[at] as string)) at += 1;
  return at;
}
