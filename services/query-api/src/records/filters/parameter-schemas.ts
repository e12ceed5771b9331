import { inCode } from '@sluice/shared/text/printable';
import { parseTimestamp } from '@sluice/shared/text/timestamp';
import { z } from 'zod';
import { ITEMS_MAX, LIMIT_DEFAULT, LIMIT_MAX, PROPERTY_FILTERS_MAX } from '../../http/http.ts';
import { notEmpty, type OperandKind } from './operators.ts';

// The schemas of single parameters. Each reads one text; its metadata is what OpenAPI shows.

/** The range of the column `timestamp`; nothing outside it is ever stored. */
const TIME_MS_MIN = Date.UTC(1900, 0, 1);
export const TIME_MS_MAX = Date.UTC(2299, 11, 31);

/** A `+` that was sent unencoded in the zone of a timestamp arrives as a space. */
const ZONE_AFTER_SPACE = /(:\d{2}(?:[.,]\d+)?) (\d{2}:?\d{2})$/;

/** The schemas of a route's parameters, each of one text. */
export type ParameterShape = Readonly<Record<string, z.ZodType<unknown, string>>>;

/** Text that is not empty. */
export function textParameter(description: string): z.ZodType<string, string> {
  return notEmpty.meta({ description });
}

const uuid = z
  .string()
  .regex(/^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/, 'must be a UUID')
  .toLowerCase();

/** A UUID in any case; read in lower case. */
export function uuidParameter(description: string): z.ZodType<string, string> {
  return uuid.meta({ format: 'uuid', description });
}

/** `nextCursor` of a page. `repeated` names what the next request has to repeat. */
export function cursorParameter(repeated: string) {
  return notEmpty.meta({ description: `\`nextCursor\` of the page before, with the same ${repeated}.` });
}

/** `ASC` or `DESC`. */
export function directionParameter(direction: 'ASC' | 'DESC') {
  return z
    .string()
    .toUpperCase()
    .pipe(z.enum(['ASC', 'DESC'], 'must be ASC or DESC'))
    .meta({ enum: ['ASC', 'DESC'], default: direction, description: 'In upper or lower case.' });
}

/** A whole number of records. More than {@link LIMIT_MAX} counts as that. */
export const limitParameter = z
  .string()
  .regex(/^\d+$/, 'must be a whole number, 0 or more')
  .transform((text) => Math.min(Number(text), LIMIT_MAX))
  .meta({
    type: 'integer',
    minimum: 0,
    override: { default: LIMIT_DEFAULT },
    description: `How many records to return at most. More than ${LIMIT_MAX} counts as ${LIMIT_MAX}.`,
  });

/** A whole number from 1 to `max`. */
export function numberParameter(max: number, unlessGiven: number, description: string) {
  const error = `must be a whole number from 1 to ${max}`;
  return z
    .string()
    .regex(/^\d+$/, error)
    .transform(Number)
    .refine((number) => number >= 1 && number <= max, error)
    .meta({ type: 'integer', minimum: 1, maximum: max, override: { default: unlessGiven }, description });
}

export const offsetParameter = z
  .string()
  .regex(/^\d+$/, 'must be a whole number, 0 or more')
  .transform(Number)
  .refine(Number.isSafeInteger, `must be at most ${Number.MAX_SAFE_INTEGER}`)
  .meta({
    type: 'integer',
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    // No `default`: clients that send defaults would send it beside a cursor.
    description: 'How many records to skip; none unless given. A cursor costs less.',
  });

/**
 * A timestamp, in milliseconds since 1970. `dateMs` returns the millisecond that a date alone means, from its first
 * one.
 */
export function timestampParameter(dateMs: (dayMs: number) => number, description: string) {
  return z
    .string()
    .transform((text, context) => {
      const parsed = parseTimestamp(text.replace(ZONE_AFTER_SPACE, '$1+$2'));
      if (parsed) return clamp(parsed.dateOnly ? dateMs(parsed.ms) : parsed.ms);
      context.addIssue({
        code: 'custom',
        message: 'must be an ISO 8601 timestamp or date, such as 2026-03-01T12:00:00Z',
      });
      return z.NEVER;
    })
    .meta({ description });
}

function clamp(ms: number): number {
  return Math.min(Math.max(ms, TIME_MS_MIN), TIME_MS_MAX);
}

/**
 * Returns the schema of a query: parameters with fixed names, and filters whose names are open.
 *
 * @param required the names of the parameters that every request has
 */
export function querySchema(shape: ParameterShape, filters: z.ZodRawShape, required: readonly string[] = []) {
  const parameters = Object.entries(shape).map(([name, schema]) => {
    if (required.includes(name)) return [name, schema] as const;
    // zod-openapi reads the description of a parameter from the outermost schema.
    return [name, schema.optional().meta({ description: schema.meta()?.description })] as const;
  });
  return z.object({ ...Object.fromEntries(parameters), ...filters });
}

/**
 * Describes the filters on the properties of a JSON object.
 *
 * @param whose what the object says, if it is not of the record itself
 */
export function documentFilters(document: string, whose = '') {
  return openParameters(
    `^${inPattern(document)}\\.`,
    `${whose}\`${document}.<name>=<value>\`, or with an operator in brackets behind the name: \`${document}.<name>[<operator>]=<value>\`. Equality is with the property written as text, a string as it is, anything else as JSON (\`true\`, \`12\`, \`null\`). An array equals a value also when one of its items does. A value that is a JSON number is compared with numbers, any other with strings by their bytes; one in double quotes is text. A dot in the name reaches into nested objects, and also matches a name with a dot. At most ${PROPERTY_FILTERS_MAX} such filters, all objects taken together.\n\n${OPERATOR_TABLE}`,
    { [`${document}.plan`]: 'pro', [`${document}.amount[gte]`]: '10' },
    PROPERTY_FILTERS_MAX,
  );
}

/** Describes the filters on fields with an operator; a field without one is a parameter with a fixed name. */
export function fieldFilters(
  fields: Readonly<Record<string, Pick<OperandKind, 'operators'>>>,
  example: Readonly<Record<string, string>>,
) {
  const patterns = Object.entries(fields).map(
    ([field, { operators }]) => `${inPattern(field)}\\[(${operators.join('|')})\\]`,
  );
  return openParameters(
    `^(${patterns.join('|')})$`,
    `\`<field>[<operator>]=<value>\`, for ${inCode(Object.keys(fields))}. \`uuid\` has \`eq\`, \`ne\` and \`in\` alone; \`event\` and \`type\` are always there and have no \`exists\`. A missing identifier equals the empty string. Text is compared by its UTF-8 bytes. \`…SeenAt\` is when the user or the organization of an event was seen first or last, and is compared with ISO 8601; a date alone is its first millisecond for \`lt\` and \`gte\`, its last one for \`lte\` and \`gt\`.\n\n${OPERATOR_TABLE}`,
    example,
  );
}

/** Returns a name as a regular expression. */
export function inPattern(name: string): string {
  return name.replaceAll('.', '\\.');
}

/** Describes parameters with open names: the members of an object, each a parameter. */
export function openParameters(
  pattern: string,
  description: string,
  example: Readonly<Record<string, string>>,
  maxProperties?: number,
) {
  return z
    .record(z.string(), z.string())
    .optional()
    .meta({
      maxProperties,
      propertyNames: { pattern },
      description,
      param: {
        style: 'form',
        explode: true,
        examples: {
          all: { summary: 'No filter', value: {} },
          some: { summary: 'Filters that must all hold', value: example },
        },
      },
    });
}

const OPERATOR_TABLE = `| operator | holds when |
| --- | --- |
| \`eq\` | it equals the value; the default |
| \`ne\` | it does not, or is not there |
| \`in\` | it equals an item of a list: up to ${ITEMS_MAX}, separated by commas; \`\\,\` is a comma inside an item, \`\\\\\` a backslash |
| \`exists\` | \`true\`: it is there; \`false\`: it is not |
| \`lt\`, \`lte\`, \`gt\`, \`gte\` | it is less than the value, at most, greater, at least |
| \`prefix\`, \`contains\` | it is text that begins with the value, or has it anywhere |`;
