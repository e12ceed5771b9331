import type { InputError } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import { parseExactJson } from '@sluice/shared/text/json';
import { inCode } from '@sluice/shared/text/printable';
import { z } from 'zod';
import {
  EVENT_COLUMNS,
  type EventSelection,
  GROUP_FIELDS,
  type GroupField,
  OWNER_DOCUMENTS,
  OWNER_KINDS,
  type Owner,
  ownerValue,
  ownerValueColumn,
  propertyNameError,
  type ReadEvents,
  textOfJson,
} from '../records/records.ts';
import type { BoundParameters, Sql, Tables } from '../store/store.ts';

/** What tells the groups of a report apart: a field of events, or the name of a property of theirs or of their owner. */
export type GroupKey = { readonly field: GroupField } | { readonly property: string; readonly owner?: Owner };

/** One of {@link GROUP_FIELDS}, or `properties.<name>`, also of the user or the organization. */
export const groupKeyParameter = z.string().transform((text, context): GroupKey => {
  const field = GROUP_FIELDS.find((one) => one === text);
  if (field) return { field };
  const owner = OWNER_KINDS.find((one) => text.startsWith(`${one}.${PROPERTIES}`));
  const path = owner ? text.slice(owner.length + 1) : text;
  return { property: propertyOfPath(path, context, UNKNOWN_KEY), ...(owner && { owner }) };
});

const PROPERTY_KEYS = ['properties', ...OWNER_DOCUMENTS].map((document) => `${document}.<name>`);

/** The keys that a report can group by, as a description lists them. */
export const GROUP_KEYS = `${inCode([...GROUP_FIELDS, ...PROPERTY_KEYS.slice(0, -1)])} and ${inCode(PROPERTY_KEYS.slice(-1))}`;

const UNKNOWN_KEY = `must be one of ${GROUP_FIELDS.join(', ')}, or ${PROPERTY_KEYS.join(', ')}`;

/** Returns a key as a request names it. */
export function nameOfKey(key: GroupKey): string {
  if ('field' in key) return key.field;
  return `${key.owner ? `${key.owner}.` : ''}${PROPERTIES}${key.property}`;
}

/**
 * Returns SQL of an event's key: the text of a field, or the JSON of a property. A missing one is the empty string.
 *
 * @param index of the key among those of {@link eventsWithOwners}, which the query reads FROM
 * @param events what it reads of events, with the {@link propertiesOfKeys} among others
 */
export function keyOfEvent(
  key: GroupKey,
  index: number,
  events: Pick<ReadEvents<unknown>, 'valueOf'>,
  parameters: BoundParameters,
): string {
  if ('field' in key) return EVENT_COLUMNS[key.field].column;
  if (key.owner) return ownerValueColumn(prefixOf(index));
  return events.valueOf(key.property, parameters);
}

/** Returns the names of the properties of events that keys are. */
export function propertiesOfKeys(keys: readonly GroupKey[]): readonly string[] {
  return keys.flatMap((key) => ('field' in key || key.owner ? [] : [key.property]));
}

/** Returns the names of the properties of events whose values a report reads. @param others besides filters and keys */
export function propertiesRead(
  { properties }: Pick<EventSelection, 'properties'>,
  keys: readonly GroupKey[],
  others: readonly string[] = [],
): readonly string[] {
  const filtered = properties.flatMap(({ document, name }) => (document === 'properties' ? [name] : []));
  return [...new Set([...filtered, ...propertiesOfKeys(keys), ...others])];
}

/** Returns what to read FROM: events, and beside each what the keys ask of its user or organization. */
export function eventsWithOwners(tables: Tables, events: Sql, keys: readonly GroupKey[]): Sql {
  const values = keys.flatMap((key, index) => {
    if ('field' in key || !key.owner) return [];
    return [ownerValue(tables, { owner: key.owner, property: key.property }, prefixOf(index))];
  });
  if (values.length === 0) return events;
  return {
    sql: `${events.sql} AS selected\n${values.map(({ sql }) => sql).join('\n')}`,
    params: Object.assign({}, events.params, ...values.map(({ params }) => params)),
  };
}

function prefixOf(index: number): string {
  return `owner${index}`;
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

/** Returns the schema of what a report was grouped by. */
export function groupBySchema() {
  return z.array(z.string()).max(1).meta({ description: 'The field that `groupBy` named, if it did.' });
}

/**
 * Returns the schema of the groups of a report.
 *
 * @param id of a group in the OpenAPI document
 * @param members of a group, besides its key
 * @param order says what the largest groups are
 */
export function groupsSchema(id: string, members: z.ZodRawShape, groupsMax: number, order: string) {
  const group = z.array(z.unknown()).length(1).meta({ description: "The field's value, as JSON; `null` is missing." });
  return z
    .array(z.object({ group, ...members }).meta({ id }))
    .max(groupsMax)
    .optional()
    .meta({
      description: `The ${groupsMax} largest groups ${order}, the largest first. Only with \`groupBy\`, and when \`complete\` is \`true\`.`,
    });
}

/** The group of which people are listed, as JSON. */
export const groupParameter = z
  .string()
  .transform((text, context): unknown => {
    try {
      return parseExactJson(text);
    } catch {
      context.addIssue({ code: 'custom', message: 'must be JSON, as in groups of the report, such as "pro" or null' });
      return z.NEVER;
    }
  })
  .meta({
    description: 'With `groupBy`: the group that they are in, as JSON, as `groups` of the report has it.',
    examples: ['"pro"'],
  });

const NO_GROUP: InputError = { path: 'group', code: 'required', message: 'is required with groupBy' };
const NO_GROUP_BY: InputError = { path: 'groupBy', code: 'required', message: 'is required with group' };
const NO_TEXT: InputError = {
  path: 'group',
  code: 'invalid',
  message: 'must be a string or null, as all values of this groupBy',
};

/** Returns what is wrong with `groupBy` and `group` of a request together. */
export function groupErrors(query: QueryParameters, groupBy: GroupKey | undefined, group: unknown): InputError[] {
  const errors: InputError[] = [];
  if (query['groupBy'] !== undefined && query['group'] === undefined) errors.push(NO_GROUP);
  if (query['group'] !== undefined && query['groupBy'] === undefined) errors.push(NO_GROUP_BY);
  const isText = group === undefined || group === null || typeof group === 'string';
  if (groupBy && 'field' in groupBy && !isText) errors.push(NO_TEXT);
  return errors;
}

/** Returns the condition that a key is that of a group, whose value is what the report shows: {@link keyValue}. */
export function groupCondition(groupBy: GroupKey, column: string, value: unknown): Sql {
  if (value === null) return { sql: `${column} = ''`, params: {} };
  const sql = `${column} = {key:String}`;
  // ClickHouse writes large numbers without the plus.
  if (typeof value !== 'string') return { sql, params: { key: JSON.stringify(value).replace(/^(-?[\d.]+e)\+/, '$1') } };
  const params = { key: value.toWellFormed() };
  if ('field' in groupBy) return { sql, params };
  return { sql: `startsWith(${column}, '"') AND ${textOfJson(column)} = {key:String}`, params };
}

/** What the path of a property begins with: `properties.<name>`. */
export const PROPERTIES = 'properties.';

/**
 * Returns the name in the path of a property, for the transform of a parameter. Any other text is refused.
 *
 * @param message what is wrong with a text that is no such path
 */
export function propertyOfPath(path: string, context: z.core.$RefinementCtx, message: string): string {
  const name = path.slice(PROPERTIES.length);
  const error = path.startsWith(PROPERTIES) ? propertyNameError(name) : message;
  if (error === undefined) return name;
  context.addIssue({ code: 'custom', message: error });
  return z.NEVER;
}
