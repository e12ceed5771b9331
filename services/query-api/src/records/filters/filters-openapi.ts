import { inCode } from '@sluice/shared/text/printable';
import { z } from 'zod';
import { ITEMS_MAX, PROPERTY_FILTERS_MAX } from '../../http/limits.ts';
import type { OperandKind } from './operators.ts';
import type { ParameterShape } from './parameter-schemas.ts';

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

/** Describes the filters on the properties of a JSON object. */
export function documentFilters(document: string) {
  return openParameters(
    `^${document}\\.`,
    `\`${document}.<name>=<value>\`, or with an operator in brackets behind the name: \`${document}.<name>[<operator>]=<value>\`. Equality is with the property written as text, a string as it is, anything else as JSON (\`true\`, \`12\`, \`null\`). An array equals a value also when one of its items does. A value that is a JSON number is compared with numbers, any other with strings by their bytes; one in double quotes is text. A dot in the name reaches into nested objects, and also matches a name with a dot. At most ${PROPERTY_FILTERS_MAX} such filters, all objects taken together.\n\n${OPERATOR_TABLE}`,
    { [`${document}.plan`]: 'pro', [`${document}.amount[gte]`]: '10' },
    PROPERTY_FILTERS_MAX,
  );
}

/** Describes the filters on fields with an operator; a field without one is a parameter with a fixed name. */
export function fieldFilters(
  fields: Readonly<Record<string, Pick<OperandKind, 'operators'>>>,
  example: Readonly<Record<string, string>>,
) {
  const patterns = Object.entries(fields).map(([field, { operators }]) => `${field}\\[(${operators.join('|')})\\]`);
  return openParameters(
    `^(${patterns.join('|')})$`,
    `\`<field>[<operator>]=<value>\`, for ${inCode(Object.keys(fields))}. \`uuid\` has \`eq\`, \`ne\` and \`in\` alone; \`event\` and \`type\` are always there and have no \`exists\`. A missing identifier equals the empty string. Text is compared by its UTF-8 bytes.\n\n${OPERATOR_TABLE}`,
    example,
  );
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
