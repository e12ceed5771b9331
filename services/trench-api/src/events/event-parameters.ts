import { type InputError, Problem } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import { parseExactJson } from '@sluice/shared/text/json';
import { isJsonObject } from '@sluice/submissions/reading/json-object';

/** How many events a page has, without `limit` and at most. */
export const LIMIT_MAX = 1_000;

/** Parameters that mean the same to query-api. */
const SAME = ['uuid', 'event', 'userId', 'groupId', 'anonymousId', 'instanceId', 'startDate', 'offset'] as const;

/** Parameters whose value is a JSON object. */
const OBJECTS = ['properties', 'traits', 'context'] as const;

/** The columns of Trench's table by which events are ordered, and what query-api calls them. */
const ORDER_FIELDS: Readonly<Record<string, string>> = {
  user_id: 'userId',
  group_id: 'groupId',
  anonymous_id: 'anonymousId',
  instance_id: 'instanceId',
  parsed_at: 'receivedAt',
  parsedAt: 'receivedAt',
};

/** The fifteen parameters of `GET /events`. */
export const EVENT_PARAMETERS: readonly string[] = [
  ...SAME,
  ...OBJECTS,
  ...['endDate', 'limit', 'orderByField', 'orderByDirection'],
];

/** How the names of query-api's filters begin that have no place in Trench's parameters. */
const FILTERS = [...OBJECTS.map((name) => `${name}.`), 'user.', 'organization.', 'segment['] as const;

const DATE = /^\d{4}-\d{2}-\d{2}$/;

/**
 * Returns the parameters of Trench's `GET /events` as query-api has them, and its filters by properties, by users and organizations, and
 * by segments as they are. As in Trench, the events are as they were sent, and empty and unknown parameters do nothing.
 *
 * @throws {Problem} `invalid_request` naming every parameter that is no JSON object, or given twice
 */
export function queryParameters(given: QueryParameters): URLSearchParams {
  const errors: InputError[] = [];
  const parameters = new URLSearchParams();
  const textOf = (name: string): string | undefined => {
    const [value, ...others] = given[name] ?? [];
    if (others.length > 0) errors.push({ path: name, code: 'repeated', message: 'must be given once' });
    return value || undefined;
  };
  const add = (name: string, value: string | undefined) => {
    if (value !== undefined) parameters.append(name, value);
  };
  for (const name of SAME) add(name, textOf(name));
  add('endDate', instantOf(textOf('endDate')));
  for (const name of OBJECTS) {
    const filters = filtersOf(name, textOf(name), errors);
    for (const [parameter, value] of filters) parameters.append(parameter, value);
  }
  for (const [name, values] of Object.entries(given)) {
    if (name !== 'segment' && !FILTERS.some((beginning) => name.startsWith(beginning))) continue;
    for (const value of values) parameters.append(name, value);
  }
  // In Trench, events of a user are those that name it.
  add('identity', 'raw');
  add('limit', textOf('limit') ?? String(LIMIT_MAX));
  const field = textOf('orderByField');
  add('orderByField', field !== undefined && Object.hasOwn(ORDER_FIELDS, field) ? ORDER_FIELDS[field] : field);
  add('orderByDirection', textOf('orderByDirection')?.toUpperCase());
  if (errors.length === 0) return parameters;
  const [first] = errors;
  throw new Problem('invalid_request', `${first?.path} ${first?.message}.`, { errors });
}

/** In Trench a date alone is its beginning; in query-api, as the end of a range, it is the whole day. */
function instantOf(date: string | undefined): string | undefined {
  return date !== undefined && DATE.test(date) ? `${date}T00:00:00.000Z` : date;
}

/** Returns a filter for each member of the object in a parameter: that the property is equal to it. */
function filtersOf(
  name: string,
  text: string | undefined,
  errors: InputError[],
): readonly (readonly [string, string])[] {
  if (text === undefined) return [];
  const object = objectOf(text);
  if (object === undefined) {
    errors.push({ path: name, code: 'invalid_value', message: 'must be a JSON object' });
    return [];
  }
  // The operator is always written: the name of a property may itself end with brackets.
  return Object.entries(object).map(([member, value]) => [
    `${name}.${member}[eq]`,
    typeof value === 'string' ? value : JSON.stringify(value),
  ]);
}

function objectOf(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value = parseExactJson(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
