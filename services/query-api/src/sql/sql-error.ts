import { ErrorCodes } from '@sluice/shared/clickhouse/error-codes';
import { Problem } from '@sluice/shared/http/problem';
import { ClickHouseException, outcomeOf, QueryTooLong, queryProblem } from '../store/store.ts';

/** What the account may not do. */
const REFUSED = new ErrorCodes('ACCESS_DENIED', 'READONLY');

const UNKNOWN = new ErrorCodes('UNKNOWN_TABLE', 'UNKNOWN_DATABASE');

/** An error of ClickHouse itself. */
const INTERNAL = new ErrorCodes('LOGICAL_ERROR');

/** The views of deploy/clickhouse/sql/views.sql. */
export const VIEWS: readonly string[] = ['events', 'users', 'organizations', 'identities'];

/** Off, sub-selects stay in the query tree beside their values. An accounts.xml of an older version does not let it be set. */
export const SHOWS_SCALARS = 'enable_scalar_subquery_optimization';

const NOT_ALLOWED = 'it reads or does something that is not allowed';

const MESSAGE_CHARACTERS_MAX = 1_000;

/** Returns the error response to a statement that failed. Errors of the statement itself come with ClickHouse's message. */
export function sqlProblem(error: unknown, database: string): unknown {
  if (error instanceof QueryTooLong) return tooLong(error);
  if (!(error instanceof ClickHouseException)) return error;
  const { code, message } = error;
  if (INTERNAL.has(code)) return queryProblem('failed', error);
  if (REFUSED.has(code)) {
    const isOfSetUp = message.includes(` ON ${database}.`) || message.includes(SHOWS_SCALARS);
    return isOfSetUp ? notSetUp(error) : invalid(NOT_ALLOWED, error);
  }
  if (UNKNOWN.has(code))
    return isOfSetUp(error, database) ? notSetUp(error) : invalid(cleaned(message, database), error);
  const outcome = outcomeOf(error);
  return outcome === 'failed' ? invalid(cleaned(message, database), error) : queryProblem(outcome, error);
}

function tooLong(cause: QueryTooLong): Problem {
  const errors = [{ path: 'params', code: 'too_long', message: 'are too long' }];
  return new Problem('invalid_request', 'The parameters are too long.', { errors, cause });
}

/** Whether it is one of the views, or their database, that is missing. */
function isOfSetUp({ code, message }: ClickHouseException, database: string): boolean {
  if (new ErrorCodes('UNKNOWN_DATABASE').has(code)) return message.startsWith(`Database ${database} `);
  const [, table = ''] = /identifier '([^']*)'/.exec(message) ?? [];
  return VIEWS.some((view) => table === view || table === `${database}.${view}`);
}

/** The views or the rights that docs/operate/secure.md describes are missing: the log has the cause. */
function notSetUp(cause: ClickHouseException): Problem {
  return queryProblem('unavailable', cause);
}

/** It has no cause: the server has not failed. */
function invalid(message: string, { message: original }: ClickHouseException): Problem {
  const [, name = 'invalid_value'] = NAME_OF_ERROR.exec(withoutVersion(original)) ?? [];
  const errors = [{ path: 'sql', code: name.toLowerCase(), message }];
  return new Problem('invalid_sql', `The SQL cannot be run: ${message}`, { errors });
}

/** ClickHouse ends a message with it: ` (SYNTAX_ERROR)`. */
const NAME_OF_ERROR = / ?\(([A-Z0-9_]+)\)$/;

/** How long the version at the end of a message is at most, in characters: ` (version 26.7.2.1 (official build))`. */
const VERSION_CHARACTERS_MAX = 100;

/** Texts of the statement may be in the message: the time grows as it does, and not with its square. */
function withoutVersion(message: string): string {
  const text = message.trimEnd();
  const at = text.lastIndexOf(' (version ');
  return at < 0 || text.length - at > VERSION_CHARACTERS_MAX ? text : text.slice(0, at);
}

/** Returns what a message says about the statement, without what it says about the server and its plan. */
export function cleaned(message: string, database: string): string {
  const text = withoutVersion(message)
    .replaceAll(`${database}.`, '')
    .replace(/ \(table \w+ \([0-9a-f-]{36}\)\)/g, '')
    .replace(NAME_OF_ERROR, '')
    .replace(/:? ?[Ii]n scope .*?(?=\. Maybe you meant|$)/s, '')
    .replace(/(: |\. )?[Ww]hile (executing|processing|converting source column) .*$/s, '')
    .trim();
  return text.length > MESSAGE_CHARACTERS_MAX ? `${text.slice(0, MESSAGE_CHARACTERS_MAX)}…` : text;
}
