// The limits of a request. An operator sets those of a query, of the queue and of a key: see config.ts.

/** Records of a page, unless the request says how many. */
export const LIMIT_DEFAULT = 100;

/** Records of a page at most. */
export const LIMIT_MAX = 1_000;

/** Up to where `total=capped` counts. */
export const TOTAL_CAP = 10_000;

/** Filters on properties. */
export const PROPERTY_FILTERS_MAX = 20;

/** Dots in the name of a property to filter by. Each dot doubles the number of places where the property can be. */
export const NAME_DOTS_MAX = 6;

/** Items of a list behind `[in]`. */
export const ITEMS_MAX = 100;

/** How long a position of the stream can be resumed, in days. */
export const RESUMABLE_DAYS = 7;
