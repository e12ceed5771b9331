import { Problem } from './problem.ts';

/** The parameters of a URL's query. A repeated one has several values. */
export type QueryParameters = Readonly<Record<string, readonly string[]>>;

/**
 * Parses a query string. It refuses what is not percent-encoded UTF-8, rather than guess its meaning. The object has no
 * prototype, so that `__proto__` is a name like any other.
 *
 * @throws {Problem} `invalid_request`
 */
export function parseQueryString(text: string): Record<string, string[]> {
  const parameters: Record<string, string[]> = Object.create(null);
  for (const pair of text.split('&')) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    const name = decode(equals < 0 ? pair : pair.slice(0, equals));
    const value = equals < 0 ? '' : decode(pair.slice(equals + 1));
    parameters[name] ??= [];
    parameters[name].push(value);
  }
  return parameters;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    const message = 'is not valid percent-encoding';
    throw new Problem('invalid_request', 'The query string is malformed.', {
      errors: [{ path: text.slice(0, 100), code: 'malformed', message }],
    });
  }
}
