import { type InputError, Problem } from './problem.ts';

/** How much of a name an error repeats. */
const PATH_CHARACTERS_MAX = 100;

/** The parameters of a URL's query. A repeated one has several values. */
export type QueryParameters = Readonly<Record<string, readonly string[]>>;

/**
 * Parses a query string. It refuses what is not percent-encoded UTF-8, rather than guess its meaning. The object has no
 * prototype, so that `__proto__` is a name like any other.
 *
 * @throws {Problem} `invalid_request`, naming every parameter that is malformed
 */
export function parseQueryString(text: string): Record<string, string[]> {
  const parameters: Record<string, string[]> = Object.create(null);
  const errors: InputError[] = [];
  for (const pair of text.split('&')) {
    if (pair === '') continue;
    const equals = pair.indexOf('=');
    const encoded = equals < 0 ? pair : pair.slice(0, equals);
    const name = decode(encoded);
    const value = equals < 0 ? '' : decode(pair.slice(equals + 1));
    if (name === undefined || value === undefined) {
      const path = (name ?? encoded).slice(0, PATH_CHARACTERS_MAX);
      errors.push({ path, code: 'malformed', message: 'is not valid percent-encoding' });
      continue;
    }
    parameters[name] ??= [];
    parameters[name].push(value);
  }
  if (errors.length > 0) throw new Problem('invalid_request', 'The query string is malformed.', { errors });
  return parameters;
}

/** Returns the parameters of a query in which each has one value. As that of {@link parseQueryString}, the object has no prototype. */
export function queryOf(texts: Readonly<Record<string, string>>): QueryParameters {
  const lists = Object.entries(texts).map(([name, text]) => [name, [text]]);
  return Object.assign(Object.create(null), Object.fromEntries(lists));
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}
