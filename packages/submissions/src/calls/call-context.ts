import { ObjectText } from '../reading/json-object.ts';

type JsonObject = Readonly<Record<string, unknown>>;

/**
 * The context of a call: its own one, and under it that of its batch, name by name. A context that is text stays text as
 * long as nobody needs its members.
 */
export class CallContext {
  readonly #text: string | undefined;
  #members: Record<string, unknown> | undefined;

  constructor(own: JsonObject | ObjectText | undefined, batch: JsonObject) {
    if (own instanceof ObjectText && Object.keys(batch).length === 0) this.#text = own.json;
    // A copy. As a spread, it has `__proto__` as a name like any other.
    else this.#members = { ...batch, ...(own instanceof ObjectText ? own.parse() : own) };
  }

  /** Returns a member; `undefined` when there is none. */
  get(name: string): unknown {
    return this.#members === undefined && !this.#text?.includes(`"${name}"`) ? undefined : this.#parsed()[name];
  }

  /** Returns the context with more members, unless it has them: an object, or its text; `undefined` when it is empty. */
  with(added: Readonly<Record<string, string | undefined>>): JsonObject | string | undefined {
    const text = this.#text;
    const more = Object.entries(added).filter(([, value]) => value !== undefined);
    if (this.#members === undefined && text !== undefined && !more.some(([name]) => text.includes(`"${name}"`))) {
      const members = [text.slice(1, -1), ...more.map(([name, value]) => `"${name}":${JSON.stringify(value)}`)];
      const all = members.filter((member) => member !== '').join();
      return all === '' ? undefined : `{${all}}`;
    }
    const members = this.#parsed();
    for (const [name, value] of more) members[name] ??= value;
    return Object.keys(members).length === 0 ? undefined : members;
  }

  #parsed(): Record<string, unknown> {
    this.#members ??= JSON.parse(this.#text ?? '{}') as Record<string, unknown>;
    return this.#members;
  }
}
