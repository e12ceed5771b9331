import { randomUUID } from 'node:crypto';
import type { QuerySettings } from './query-settings.ts';
import { QueryTooLong } from './read-failures.ts';
import type { Sql, SqlValue } from './sql.ts';

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

/**
 * Returns the body of a request for a statement over several servers, as a form. One of its parameters is a password, and a
 * server logs the address of each request at its level "trace", which is the default; of a form it logs nothing
 * (docs/design/decisions/0059-reading-shards.md).
 *
 * @throws {QueryTooLong}
 */
export function formOf({ sql, params }: Sql, settings: QuerySettings): { body: string; contentType: string } {
  const query = `${sql} ${settingsClause(settings)}`;
  const fields = [['query', query], ...parameterTexts(params)] as const;
  const boundary = `sluice-${randomUUID()}`;
  const parts = fields.map(([name, value]) => {
    refuseLongField(value);
    return `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
  });
  return {
    body: `${parts.join('')}--${boundary}--\r\n`,
    contentType: `multipart/form-data; boundary=${boundary}`,
  };
}

/** Not part of the statement: it cannot change the one, and the other came with the request. */
const IN_ADDRESS_ALONE: ReadonlySet<string> = new Set(['readonly', 'log_comment']);

/** What a value of a setting may be: a number, which ClickHouse takes without quotes alone, or a text that needs no escapes. */
const NUMBER = /^-?\d+(\.\d+)?$/;
const TEXT = /^[A-Za-z_,{}]*$/;

/**
 * Returns settings as the end of a statement. Of those in the address, a server passes on to the others only what differs
 * from its own defaults, and these may have other ones.
 */
export function settingsClause(settings: QuerySettings): string {
  const items = Object.entries(settings)
    .filter(([name]) => !IN_ADDRESS_ALONE.has(name))
    .map(([name, value]) => {
      if (NUMBER.test(value)) return `${name} = ${value}`;
      if (!TEXT.test(value)) throw new Error(`the setting ${name} cannot be part of a statement`);
      return `${name} = '${value}'`;
    });
  return `SETTINGS ${items.join(', ')}`;
}

// What ClickHouse takes of one request over HTTP. It refuses longer ones in ways that look like failures of its own.

/** `http_max_uri_size`: the path of a request with its query string, in characters. */
const ADDRESS_CHARACTERS_MAX = 1_024 * 1_024;

/** `http_max_field_value_size`: a value of the query string, as it is encoded, of a form, or of a header, in characters. */
export const VALUE_CHARACTERS_MAX = 128 * 1_024;

/** `max_query_size`, as every query pins it: the SQL, in bytes. */
export const SQL_BYTES_MAX = 256 * 1_024;

/**
 * Refuses a request that ClickHouse would refuse for its length.
 *
 * @param address the path, or the part of its query string that may be long
 * @param spare how many characters of the address and of the SQL are to be left for what is added later
 * @throws {QueryTooLong}
 */
export function refuseTooLong(address: string, sql: string, spare = 0): void {
  refuseLonger('an address', address.length, ADDRESS_CHARACTERS_MAX - spare);
  for (const parameter of address.length > VALUE_CHARACTERS_MAX ? address.split('&') : []) {
    refuseLonger('a value', parameter.length - parameter.indexOf('=') - 1, VALUE_CHARACTERS_MAX);
  }
  refuseLonger('SQL', Buffer.byteLength(sql), SQL_BYTES_MAX - spare);
}

/** Refuses a value of a form that ClickHouse would refuse for its length. @throws {QueryTooLong} */
function refuseLongField(value: string): void {
  refuseLonger('a value', Buffer.byteLength(value), VALUE_CHARACTERS_MAX);
}

function refuseLonger(what: string, length: number, max: number): void {
  if (length > max) throw new QueryTooLong(`the query has ${what} with a length of ${length}, and ${max} is allowed`);
}
