import { EVENT_IDENTIFIERS } from '@sluice/shared/event-identifiers';
import type { Menus } from './menus.ts';

/** A parameter that has a field of its own in a form. */
export interface FieldDescription {
  readonly name: string;
  readonly label: string;
  readonly placeholder?: string;
  /** The values that it may have, each with its label; without them it is text. */
  readonly options?: readonly (readonly [value: string, label: string])[];
  /** Returns values to choose from, beside any other text. */
  readonly suggestions?: (menus: Menus) => readonly string[];
}

const FILTERS: readonly FieldDescription[] = [
  { name: 'event', label: 'Event', suggestions: ({ events }) => events },
  { name: 'type', label: 'Type' },
  { name: 'userId', label: 'User' },
  { name: 'groupId', label: 'Organization' },
];

const DATES: readonly FieldDescription[] = [
  { name: 'startDate', label: 'From', placeholder: '2026-01-31' },
  { name: 'endDate', label: 'To', placeholder: '2026-01-31' },
];

/** The fields of the page of events. */
export const EVENT_FIELDS: readonly FieldDescription[] = [...FILTERS, ...DATES];

/** The fields of the page of a chart. */
export const CHART_FIELDS: readonly FieldDescription[] = [
  ...FILTERS,
  {
    name: 'range',
    label: 'Range',
    options: [
      ['', 'Last 30 days'],
      ['1h', 'Last hour'],
      ['24h', 'Last 24 hours'],
      ['7d', 'Last 7 days'],
      ['90d', 'Last 90 days'],
      ['12m', 'Last 12 months'],
      ['60m', 'Last 5 years'],
    ],
  },
  ...DATES,
  {
    name: 'interval',
    label: 'Interval',
    options: [
      ['', 'By range'],
      ['minute', 'Minute'],
      ['hour', 'Hour'],
      ['day', 'Day'],
      ['week', 'Week'],
      ['month', 'Month'],
      ['none', 'None: totals only'],
    ],
  },
  {
    name: 'measure',
    label: 'Measure',
    placeholder: 'count',
    suggestions: ({ properties }) => ['count', 'users', 'organizations', ...properties.flatMap(measuresOf)],
  },
  {
    name: 'groupBy',
    label: 'Group by',
    placeholder: 'properties.plan',
    suggestions: ({ properties }) => [
      ...['event', 'type', 'userId', 'groupId'],
      ...EVENT_IDENTIFIERS.filter(({ grouped }) => grouped).map(({ field }) => field),
      // A comma would begin another key.
      ...properties.map(({ path }) => path.replaceAll(/[\\,]/g, '\\$&')),
    ],
  },
  { name: 'groups', label: 'Groups', placeholder: '10' },
  {
    name: 'compare',
    label: 'Compare with',
    options: [
      ['', 'Nothing'],
      ['previous', 'The time before'],
    ],
  },
];

function measuresOf({ path, types }: Menus['properties'][number]): string[] {
  return types.includes('number') ? ['sum', 'avg', 'p95'].map((measure) => `${measure}:${path}`) : [];
}
