import { hrefOf } from '../base/base.ts';
import { eventFilters, withValue } from '../filters/filters.ts';

/** A value of a field or property, `null` for none. */
export type Valued = readonly [name: string, value: unknown];

/** A longer text may not fit into an address. */
const VALUE_MAX = 2_000;

/**
 * Returns the address of the events that match the filters of a page and some more, in a time. `undefined` without a page, and
 * where no address can say it.
 */
export function eventsHref(
  params: URLSearchParams | undefined,
  { startDate, endDate }: { readonly startDate: string | null; readonly endDate: string | null },
  values: readonly Valued[] = [],
): string | undefined {
  const filters = params && withValues(eventFilters(params), values);
  if (startDate !== null) filters?.set('startDate', startDate);
  if (endDate !== null) filters?.set('endDate', endDate);
  return filters && hrefOf(['events'], filters);
}

/** Returns the address of the page with more filters; `undefined` without a page, and where no address can say it. */
export function narrowedHref(params: URLSearchParams | undefined, values: readonly Valued[]): string | undefined {
  const filters = params && withValues(params, values);
  return filters && hrefOf(['explore'], filters);
}

function withValues(params: URLSearchParams, values: readonly Valued[]): URLSearchParams | undefined {
  const isLong = values.some(([, value]) => JSON.stringify(value).length > VALUE_MAX);
  return isLong ? undefined : values.reduce((filters, [name, value]) => withValue(filters, name, value), params);
}
