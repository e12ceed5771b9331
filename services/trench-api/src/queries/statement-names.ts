import { jsonText } from '@sluice/submissions/reading/json-members';
import type { JsonMembers } from '../upstream/json-list.ts';

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

/** Returns the JSON of a row of a result as Trench shows it: names in camel case, and JSON in place of texts with JSON. */
export function withTheirNames(row: JsonMembers): string {
  const entries = [...row].map(([name, json]): [string, string] => [
    Object.hasOwn(RESULT_NAMES, name) ? (RESULT_NAMES[name] as string) : camelCase(name),
    JSON_COLUMNS.some((column) => column === name) ? inPlaceOfText(json) : json,
  ]);
  return jsonText(new Map(entries));
}

function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** Returns the JSON that a text has; what has none stays as it is. */
function inPlaceOfText(json: string): string {
  if (!json.startsWith('"')) return json;
  const text = JSON.parse(json) as string;
  try {
    // Its digits would be lost in values.
    JSON.parse(text);
    return text;
  } catch {
    return json;
  }
}
