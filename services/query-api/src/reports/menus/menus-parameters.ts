import type { InputError } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import { inCode } from '@sluice/shared/text/printable';
import { z } from 'zod';
import { LIMIT_DEFAULT, LIMIT_MAX } from '../../http/http.ts';
import {
  EVENT_COLUMNS,
  EVENT_FIELDS,
  type EventField,
  eventFilterable,
  type FieldsLike,
  numberParameter,
  OWNER_KINDS,
  type OwnerProperty,
  type ParsedParameters,
  parseParameters,
  refuseErrors,
  type SelectionDocument,
  type SelectionField,
  START_AFTER_END,
  selectionParameters,
} from '../../records/records.ts';
import { propertyOfPath } from '../group-key.ts';
import type { MenuRequest } from './event-names.ts';

/** A field of text. */
type TextField = FieldsLike<{ readonly type: 'text' | 'identifier' }>;

/** What values can be listed of: a field, or a property by its name. */
export type ValueSource =
  | { readonly field: TextField; readonly property?: never }
  | { readonly field: 'properties'; readonly property: string }
  | (OwnerProperty & { readonly field?: never });

/** Whose properties a menu can list. */
const PROPERTY_HOLDERS = ['event', ...OWNER_KINDS] as const;

const TEXT_FIELDS = EVENT_FIELDS.map(([field]) => field).filter(isTextField);

/** The parameters of a menu, except those of properties and operators. */
function menuParameters(prefixDescription: string) {
  return {
    ...selectionParameters,
    prefix: z.string().meta({ description: `${prefixDescription} Upper and lower case differ.` }),
    limit: numberParameter(LIMIT_MAX, LIMIT_DEFAULT, 'How many results to return at most.'),
  };
}

/** The parameters of `GET /events/names`. */
export const namesParameters = menuParameters('Names that begin with this.');

/** The parameters of `GET /events/properties`. */
export const propertiesParameters = {
  ...menuParameters('Paths that begin with this, with or without `properties.` and what comes before it.'),
  of: z.enum(PROPERTY_HOLDERS, `must be one of ${PROPERTY_HOLDERS.join(', ')}`).meta({
    default: 'event',
    description: "Whose properties: those of the events, or those that the events' users or organizations have now.",
  }),
};

/** A valid request for the names of properties. */
export interface PropertiesRequest extends MenuRequest {
  readonly of: (typeof PROPERTY_HOLDERS)[number];
}

/** The parameters of `GET /events/values`. */
export const valuesParameters = {
  property: z
    .string()
    .transform((text, context): ValueSource => {
      if (isTextField(text)) return { field: text };
      const paths = 'properties.<name>, user.properties.<name>, organization.properties.<name>';
      const message = `must be one of ${TEXT_FIELDS.join(', ')}, or ${paths}`;
      const owner = OWNER_KINDS.find((one) => text.startsWith(`${one}.`));
      if (!owner) return { field: 'properties', property: propertyOfPath(text, context, message) };
      return { owner, property: propertyOfPath(text.slice(owner.length + 1), context, message) };
    })
    .meta({
      description: `Required. \`properties.<name>\`, where a dot means what it means in a filter, also of the event's user or organization as they are now: \`organization.properties.<name>\`; or one of ${inCode(TEXT_FIELDS)}.`,
    }),
  ...menuParameters('Values that begin with this: a string as it is, any other value as JSON.'),
};

/** A valid request for the values of a field or a property. */
export interface ValuesRequest extends MenuRequest {
  readonly source: ValueSource;
}

const PROPERTY_REQUIRED: InputError = { path: 'property', code: 'required', message: 'is required' };

/**
 * Parses the query of `GET /events/names`.
 *
 * @throws {Problem} `invalid_request`, naming every error
 */
export function parseNamesRequest(query: QueryParameters): MenuRequest {
  const parsed = parseParameters(namesParameters, eventFilterable, query);
  refuseErrors(errorsOf(parsed));
  return requestOf(parsed);
}

/**
 * Parses the query of `GET /events/properties`.
 *
 * @throws {Problem} `invalid_request`, naming every error
 */
export function parsePropertiesRequest(query: QueryParameters): PropertiesRequest {
  const parsed = parseParameters(propertiesParameters, eventFilterable, query);
  refuseErrors(errorsOf(parsed));
  return { ...requestOf(parsed), of: parsed.values.of ?? 'event' };
}

/**
 * Parses the query of `GET /events/values`.
 *
 * @throws {Problem} `invalid_request`, naming every error
 */
export function parseValuesRequest(query: QueryParameters): ValuesRequest {
  const parsed = parseParameters(valuesParameters, eventFilterable, query);
  const { property: source } = parsed.values;
  refuseErrors([...errorsOf(parsed), ...(query['property'] ? [] : [PROPERTY_REQUIRED])]);
  return { ...requestOf(parsed), source: source as ValueSource };
}

type ParsedMenu = ParsedParameters<typeof namesParameters, SelectionField, SelectionDocument>;

function errorsOf({ values: { startDate, endDate }, errors }: ParsedMenu): readonly InputError[] {
  const isReversed = startDate !== undefined && endDate !== undefined && startDate > endDate;
  return isReversed ? [...errors, START_AFTER_END] : errors;
}

function requestOf({ values, fields, properties }: ParsedMenu): MenuRequest {
  return {
    selection: { identity: values.identity, fields, properties, startMs: values.startDate, endMs: values.endDate },
    prefix: values.prefix ?? '',
    limit: values.limit ?? LIMIT_DEFAULT,
  };
}

function isTextField(field: string): field is TextField {
  if (!Object.hasOwn(EVENT_COLUMNS, field)) return false;
  const { type } = EVENT_COLUMNS[field as EventField];
  return type === 'text' || type === 'identifier';
}
