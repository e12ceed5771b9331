// The filters of a page: as parameters of its address, as a form, and the newest event that matches them.

export { Combobox, NameBox, Suggestions, useSuggestions } from './combobox.tsx';
export {
  DAY_FIELDS,
  EVENT_FIELD,
  EVENT_FIELDS,
  type FieldDescription,
  FilterField,
  IDENTITY_FIELD,
} from './filter-field.tsx';
export { Conditions, FilterForm } from './filter-form.tsx';
export {
  type Condition,
  eventFilters,
  type Filters,
  filterParams,
  IDENTITY,
  isApplied,
  parseFilters,
  stepOf,
  textOfFilters,
  withValue,
} from './filter-params.ts';
export { NewestHint, useNewestEvent } from './newest-hint.tsx';
export { type Suggestion, suggestEvents, suggestGroups, suggestNumbers, valuesOf } from './suggestions.ts';
