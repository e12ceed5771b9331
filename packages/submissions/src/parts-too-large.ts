import { ERRORS_MAX, Problem } from '@sluice/shared/http/problem';

/** A `body_too_large` that names the events and properties at `paths`. */
export function partsTooLarge(paths: readonly string[], message: string): Problem {
  const errors = paths.slice(0, ERRORS_MAX).map((path) => ({ path, code: 'too_large', message }));
  return new Problem('body_too_large', 'A part of the body is too large.', { errors });
}
