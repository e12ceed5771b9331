/** A piece of SQL and the values of its parameters. Nothing that came from outside is ever part of `sql`. */
export interface Sql {
  readonly sql: string;
  readonly params: Readonly<Record<string, SqlValue>>;
}

export type SqlValue = string | number | readonly string[] | readonly number[];

/** Joins conditions by AND, with the keyword WHERE in front. Without conditions the SQL is empty. */
export function where(conditions: readonly Sql[]): Sql {
  return {
    sql: conditions.length === 0 ? '' : `WHERE ${conditions.map(({ sql }) => `(${sql})`).join('\n  AND ')}`,
    params: Object.assign({}, ...conditions.map(({ params }) => params)),
  };
}

/** Collects the values that a piece of SQL binds. Equal values share a parameter. */
export class BoundParameters {
  readonly params: Record<string, string | readonly string[]> = {};
  readonly #prefix: string;
  readonly #names = new Map<string, string>();

  /** @param prefix begins the names of all parameters; short, since a query can have hundreds */
  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** Binds a text and returns its placeholder. */
  text(value: string): string {
    return `{${this.#bind(value)}:String}`;
  }

  /** Binds a list of texts and returns its placeholder. */
  texts(values: readonly string[]): string {
    return `{${this.#bind(values)}:Array(String)}`;
  }

  #bind(value: string | readonly string[]): string {
    const key = JSON.stringify(value);
    const name = this.#names.get(key) ?? `${this.#prefix}_${this.#names.size}`;
    this.#names.set(key, name);
    this.params[name] = value;
    return name;
  }
}
