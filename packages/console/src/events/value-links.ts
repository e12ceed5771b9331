import { hrefOf, isNumber, without } from '../base/base.ts';

/** The objects of an event in which filters can find a value. */
export const DOCUMENTS = ['properties', 'context', 'traits'] as const;

export type EventDocument = (typeof DOCUMENTS)[number];

/** Where a value is in an event: the names of the objects around it, and its own. An item of an array has its array's place. */
export interface Place {
  readonly document: EventDocument;
  readonly names: readonly string[];
}

/** query-api takes names with so many dots. */
const DOTS_MAX = 6;

/** A longer value has no link: its address would be refused on the way. */
const VALUE_CHARACTERS_MAX = 2_000;

/** The parameters of a list that another list does not keep. */
const LIST_PARAMS = ['cursor', 'offset', 'limit', 'orderByField', 'orderByDirection', 'total', 'show'];

/**
 * Returns the address of the events with a value, of those that other filters leave; `undefined` where no filter can say
 * it.
 */
export function filterHref(filters: URLSearchParams, place: Place, value: unknown): string | undefined {
  const filter = filterOf(place, value);
  if (!filter) return undefined;
  const params = without(filters, ...LIST_PARAMS);
  params.set(...filter);
  return hrefOf(['events'], params);
}

/** Returns the parameter that filters events by a value; `undefined` where no filter can say it. */
export function filterOf(place: Place, value: unknown): [name: string, text: string] | undefined {
  const path = pathOf(place);
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  if (path === undefined || text.length > VALUE_CHARACTERS_MAX) return undefined;
  // The `[lt]` of a name that ends so would be its operator, and nothing after a name is no filter.
  return [/\[[A-Za-z]+\]$/.test(path) || text === '' ? `${path}[eq]` : path, text];
}

/** Returns the address of a chart of a property of an event: the average of a number, otherwise how often each value occurs. */
export function chartHref(event: string, place: Place, value: unknown): string | undefined {
  const path = pathOf(place);
  if (path === undefined || place.document !== 'properties') return undefined;
  const params = new URLSearchParams({ report: 'series', event });
  if (isNumber(value)) params.set('measure', `avg:${path}`);
  // A comma would begin another key.
  else params.set('groupBy', path.replaceAll(/[\\,]/g, '\\$&'));
  return hrefOf(['explore'], params);
}

/** Returns a place as parameters name it; `undefined` where they cannot. */
function pathOf({ document, names }: Place): string | undefined {
  const name = names.join('.');
  if (name === '' || name.split('.').length - 1 > DOTS_MAX) return undefined;
  return `${document}.${name}`;
}
