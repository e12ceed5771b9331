import { parseExactJson } from '@sluice/shared/text/json';
import { inCode } from '@sluice/shared/text/printable';
import { z } from 'zod';
import { EVENT_COLUMNS, GROUP_FIELDS, type GroupField } from '../records/events/event-columns.ts';
import { propertyValue, textOfJson } from '../records/filters/property-value.ts';
import type { BoundParameters } from '../store/sql.ts';
import { PROPERTIES, propertyOfPath } from './property-parameter.ts';

/** What tells the groups of a report apart: a field of events, or the name of a property. */
export type GroupKey = { readonly field: GroupField } | { readonly property: string };

/** One of {@link GROUP_FIELDS} or `properties.<name>`. */
export const groupKeyParameter = z.string().transform((text, context): GroupKey => {
  const field = GROUP_FIELDS.find((one) => one === text);
  return field ? { field } : { property: propertyOfPath(text, context, UNKNOWN_KEY) };
});

/** The keys that a report can group by, as a description lists them. */
export const GROUP_KEYS = `${inCode(GROUP_FIELDS)} and \`properties.<name>\``;

const UNKNOWN_KEY = `must be one of ${GROUP_FIELDS.join(', ')}, or properties.<name>`;

/** Returns a key as a request names it. */
export function nameOfKey(key: GroupKey): string {
  return 'field' in key ? key.field : `${PROPERTIES}${key.property}`;
}

/** Returns SQL of an event's key: the text of a field, or the JSON of a property. A missing one is the empty string. */
export function keyOfEvent(key: GroupKey, parameters: BoundParameters): string {
  return 'field' in key
    ? EVENT_COLUMNS[key.field].column
    : propertyValue(EVENT_COLUMNS.properties.column, key.property, parameters);
}

/** Returns the SQL expressions that order keys by the bytes of their text; `column` holds a key of {@link keyOfEvent}. */
export function keyOrder(key: GroupKey, column: string): readonly string[] {
  const shown = `if(${column} = '', 'null', ${column})`;
  // `1` comes after `"1"`, and a missing key after the text `null`.
  return 'field' in key ? [shown, `${column} = ''`] : [textOfJson(shown), shown];
}

/** Returns the JSON value of a key of {@link keyOfEvent}. Numbers keep their digits. */
export function keyValue(key: GroupKey, text: string): unknown {
  if (text === '') return null;
  return 'field' in key ? text : parseExactJson(text);
}
