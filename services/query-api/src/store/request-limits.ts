import { QueryTooLong } from './read-failures.ts';

// What ClickHouse takes of one request over HTTP. It refuses longer ones in ways that look like failures of its own.

/** `http_max_uri_size`: the path of a request with its query string, in characters. */
export const ADDRESS_CHARACTERS_MAX = 1_024 * 1_024;

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
export function refuseLongField(value: string): void {
  refuseLonger('a value', Buffer.byteLength(value), VALUE_CHARACTERS_MAX);
}

function refuseLonger(what: string, length: number, max: number): void {
  if (length > max) throw new QueryTooLong(`the query has ${what} with a length of ${length}, and ${max} is allowed`);
}
