import type { SqlValue } from './sql.ts';

/** What ClickHouse reads as an escape sequence, or as the end of a value. */
const ESCAPES: Readonly<Record<string, string>> = { '\t': '\\t', '\n': '\\n', '\r': '\\r', "'": "\\'", '\\': '\\\\' };

/** Returns settings and values as the query string of a request to ClickHouse. A parameter `x` is sent as `param_x`. */
export function queryStringOf(
  settings: Readonly<Record<string, string>>,
  params: Readonly<Record<string, SqlValue>> = {},
): string {
  const search = new URLSearchParams(settings);
  for (const [name, value] of Object.entries(params)) search.append(`param_${name}`, parameterText(value));
  return search.toString();
}

function parameterText(value: SqlValue): string {
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') return escaped(value);
  return `[${value.map((item) => (typeof item === 'number' ? item : `'${escaped(item)}'`)).join(',')}]`;
}

function escaped(text: string): string {
  return text.replaceAll(/[\t\n\r'\\]/g, (character) => ESCAPES[character] as string);
}
