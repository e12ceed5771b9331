/** Names in Trench's SQL, and the columns of the views of query-api that they mean. */
const COLUMNS: Readonly<Record<string, string>> = {
  userId: 'user_id',
  groupId: 'organization_id',
  group_id: 'organization_id',
  anonymousId: 'anonymous_id',
  instanceId: 'instance_id',
  parsedAt: 'received_at',
  parsed_at: 'received_at',
};

/**
 * What a statement consists of, as far as names are concerned: Trench's database before its table, strings, heredocs and comments,
 * which stay as they are, and names, in quotes or not. What is not closed reaches to the end, so that a text is read once,
 * whatever it is.
 */
const TOKEN =
  /(?<![\w.])((?:default|"default"|`default`)\s*\.\s*)(?=events\b|"events"|`events`)|'(?:[^'\\]|\\[\s\S]?|'')*(?:'|$)|\$(\w*)\$[\s\S]*?(?:\$\2\$|$)|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|"[^"]*"?|`[^`]*`?|\w+/g;

const QUOTED = /^(["`])(.*)\1$/;

/**
 * Returns a statement with the names of query-api's columns in place of Trench's, and without the database of the table `events`.
 * Strings and comments stay as they are.
 */
export function withOurNames(sql: string): string {
  return sql.replace(TOKEN, (token, database?: string) => {
    if (database !== undefined) return '';
    const [, quote = '', name = token] = QUOTED.exec(token) ?? [];
    return Object.hasOwn(COLUMNS, name) ? `${quote}${COLUMNS[name]}${quote}` : token;
  });
}

/** Columns of a result that Trench calls otherwise. */
const RESULT_NAMES: Readonly<Record<string, string>> = { organization_id: 'groupId', received_at: 'parsedAt' };

/** Columns with JSON text, which Trench parses. */
const JSON_COLUMNS = ['properties', 'traits', 'context'] as const;

/**
 * Returns a row of a result as Trench shows it: names in camel case, and the columns with JSON parsed.
 *
 * @param parse parses JSON; what it refuses stays text
 */
export function withTheirNames(
  row: Readonly<Record<string, unknown>>,
  parse: (text: string) => unknown,
): Readonly<Record<string, unknown>> {
  const entries = Object.entries(row).map(([name, value]) => [
    Object.hasOwn(RESULT_NAMES, name) ? RESULT_NAMES[name] : camelCase(name),
    JSON_COLUMNS.some((column) => column === name) && typeof value === 'string' ? parsed(value, parse) : value,
  ]);
  return Object.fromEntries(entries);
}

function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function parsed(text: string, parse: (text: string) => unknown): unknown {
  try {
    return parse(text);
  } catch {
    return text;
  }
}
