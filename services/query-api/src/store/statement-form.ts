import { randomUUID } from 'node:crypto';
import type { QuerySettings } from './query-settings.ts';
import { parameterTexts } from './query-string.ts';
import { refuseLongField } from './request-limits.ts';
import type { Sql } from './sql.ts';

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
