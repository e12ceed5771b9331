import { Problem } from '@sluice/shared/http/problem';
import { MalformedJson } from './reading/json-cursor.ts';

/** Returns the problem of a body that is not JSON. */
export function notJson(cause?: unknown): Problem {
  return new Problem('malformed_json', 'The body is not JSON.', { cause });
}

/** Returns what to throw for an error of reading a body: {@link notJson} where it is one of the JSON, else the error. */
export function asProblem(error: unknown): unknown {
  return error instanceof MalformedJson || error instanceof SyntaxError ? notJson(error) : error;
}
