import { type Suggest, suggestEvents, valuesOf } from './suggestions.ts';

/** A parameter that has a field of its own in a form. */
export interface FieldDescription {
  readonly name: string;
  readonly label: string;
  readonly placeholder?: string;
  /** The values that it may have, each with its label; without them it is text. */
  readonly options?: readonly (readonly [value: string, label: string])[];
  /** Suggests values, beside any other text. */
  readonly suggest?: Suggest;
  /** Whether it is a day. Default: no. */
  readonly isDay?: boolean;
}

export const EVENT_FIELD: FieldDescription = {
  name: 'event',
  label: 'Event',
  placeholder: 'any',
  suggest: suggestEvents,
};

export const DAY_FIELDS: readonly FieldDescription[] = [
  { name: 'startDate', label: 'From', isDay: true },
  { name: 'endDate', label: 'To', isDay: true },
];

/** The fields of the page of events. */
export const EVENT_FIELDS: readonly FieldDescription[] = [
  EVENT_FIELD,
  { name: 'userId', label: 'User', suggest: valuesOf('userId') },
  { name: 'groupId', label: 'Organization', suggest: valuesOf('groupId') },
  ...DAY_FIELDS,
];
