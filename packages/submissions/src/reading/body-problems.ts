import { ERRORS_MAX, Problem } from '@sluice/shared/http/problem';
import { MalformedJson } from './json-cursor.ts';

/** Returns the problem of a body that is not JSON. */
export function notJson(cause?: unknown): Problem {
  return new Problem('malformed_json', 'The body is not JSON.', { cause });
}

/** Returns what to throw for an error of reading a body: {@link notJson} where it is one of the JSON, else the error. */
export function asProblem(error: unknown): unknown {
  return error instanceof MalformedJson || error instanceof SyntaxError ? notJson(error) : error;
}

/** A `body_too_large` that names the events and properties at `paths`. */
export function partsTooLarge(paths: readonly string[], message: string): Problem {
  const errors = paths.slice(0, ERRORS_MAX).map((path) => ({ path, code: 'too_large', message }));
  return new Problem('body_too_large', 'A part of the body is too large.', { errors });
}
