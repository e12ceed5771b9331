import type { SqlValue } from './sql.ts';

/** What ClickHouse reads as an escape sequence, or as the end of a value. */
const ESCAPES: Readonly<Record<string, string>> = { '\t': '\\t', '\n': '\\n', '\r': '\\r', "'": "\\'", '\\': '\\\\' };

/** Returns settings and values as the query string of a request to ClickHouse. */
export function queryStringOf(
  settings: Readonly<Record<string, string>>,
  params: Readonly<Record<string, SqlValue>> = {},
): string {
  const search = new URLSearchParams(settings);
  for (const [name, text] of parameterTexts(params)) search.append(name, text);
  return search.toString();
}

/** Returns values of parameters as ClickHouse's HTTP interface takes them: a parameter `x` is named `param_x`. */
export function parameterTexts(params: Readonly<Record<string, SqlValue>>): [name: string, text: string][] {
  return Object.entries(params).map(([name, value]) => [`param_${name}`, parameterText(value)]);
}

function parameterText(value: SqlValue): string {
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string') return escaped(value);
  return `[${value.map((item) => (typeof item === 'number' ? item : `'${escaped(item)}'`)).join(',')}]`;
}

function escaped(text: string): string {
  return text.replaceAll(/[\t\n\r'\\]/g, (character) => ESCAPES[character] as string);
}
