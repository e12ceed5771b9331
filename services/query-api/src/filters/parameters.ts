import { type Fault, Problem } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import { parseTimestamp } from '@sluice/shared/timestamp';
import { z } from 'zod';
import type { FieldFilter } from './field-filter.ts';
import { type Condition, conditionText, notEmpty, OPERATORS, type OperandKind, splitOperator } from './operators.ts';
import { type DocumentName, NAME_DOTS_MAX, PROPERTY_FILTERS_MAX, type PropertyFilter } from './property-filter.ts';

export const LIMIT_DEFAULT = 100;
export const LIMIT_MAX = 1_000;

/** The store's range of times; nothing outside it is ever stored. */
const TIME_MS_MIN = Date.UTC(1900, 0, 1);
const TIME_MS_MAX = Date.UTC(2299, 11, 31);

/** A `+` that was sent unencoded in the zone of a timestamp arrives as a space. */
const ZONE_AFTER_SPACE = /(:\d{2}(?:[.,]\d+)?) (\d{2}:?\d{2})$/;

/** The schemas of a route's parameters, each of one text. */
export type ParameterShape = Readonly<Record<string, z.ZodType<unknown, string>>>;

/** What can be filtered by with operators. */
export interface Filterable<Field extends string> {
  /** Parameters of the shape, which without an operator are equality. */
  readonly fields: Readonly<Record<Field, OperandKind>>;
  /** What `<document>.<name>` can be about. */
  readonly documents: readonly DocumentName[];
}

export interface ParsedParameters<Shape extends ParameterShape, Field extends string> {
  /** What was given and is valid, but for the filters. */
  readonly values: { readonly [Name in Exclude<keyof Shape, Field>]?: z.output<Shape[Name]> };
  readonly fields: readonly FieldFilter<Field>[];
  readonly properties: readonly PropertyFilter[];
  readonly faults: readonly Fault[];
}

/** What a parameter is: how to read its value, and what to do with it. */
interface Parameter {
  /** The same for every spelling of the same parameter. */
  readonly key: string;
  readonly schema: z.ZodType<unknown, string>;
  keep(value: unknown): void;
}

type FaultOfName = Pick<Fault, 'code' | 'message'>;

/** Equality with a text. */
export function filterBy(description: string) {
  return notEmpty.meta({ description });
}

/** `nextCursor` of a page. `goesWith`: what has to be the same as on that page. */
export function cursorText(goesWith: string) {
  return notEmpty.meta({ description: `\`nextCursor\` of the page before, with the same ${goesWith}.` });
}

export const uuidText = z
  .string()
  .regex(/^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/, 'must be a UUID')
  .toLowerCase()
  .meta({ format: 'uuid', description: 'Events with this uuid.' });

/** A whole number of records; what is more than {@link LIMIT_MAX} counts as that. */
export const limitText = z
  .string()
  .regex(/^\d+$/, 'must be a whole number, 0 or more')
  .transform((text) => Math.min(Number(text), LIMIT_MAX))
  .meta({
    type: 'integer',
    minimum: 0,
    override: { default: LIMIT_DEFAULT },
    description: `How many records to answer at most. More than ${LIMIT_MAX} counts as ${LIMIT_MAX}.`,
  });

export const offsetText = z
  .string()
  .regex(/^\d+$/, 'must be a whole number, 0 or more')
  .transform(Number)
  .refine(Number.isSafeInteger, `must be at most ${Number.MAX_SAFE_INTEGER}`)
  .meta({
    type: 'integer',
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    // No `default`: clients that send it would send it beside a cursor.
    description: 'How many records to leave out first, none unless given. A cursor goes on at less cost.',
  });

/** A timestamp as milliseconds since 1970. `dateMs` says which millisecond of its day a date alone means. */
export function timestampText(dateMs: (dayMs: number) => number, description: string) {
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

/** Reads a query's parameters strictly: each is known, given once and valid, or a fault. */
export function parseParameters<Shape extends ParameterShape, Field extends string>(
  shape: Shape,
  filterable: Filterable<Field>,
  query: QueryParameters,
): ParsedParameters<Shape, Field> {
  const values: Partial<Record<string, unknown>> = {};
  const fields: FieldFilter<Field>[] = [];
  const properties: PropertyFilter[] = [];
  const faults: Fault[] = [];
  const seen = new Set<string>();
  for (const [name, texts] of Object.entries(query)) {
    const path = name.slice(0, 200);
    const parameter = parameterOf(name);
    if ('message' in parameter) faults.push({ path, ...parameter });
    else if (texts.length > 1 || seen.has(parameter.key)) {
      faults.push({ path, code: 'repeated', message: 'must be given once' });
    } else {
      const result = parameter.schema.safeParse(texts[0]);
      if (result.success) parameter.keep(result.data);
      else faults.push(...result.error.issues.map(({ code, message }) => ({ path, code, message })));
    }
    if ('key' in parameter) seen.add(parameter.key);
  }
  if (properties.length > PROPERTY_FILTERS_MAX) {
    faults.push({
      path: 'properties',
      code: 'too_many',
      message: `at most ${PROPERTY_FILTERS_MAX} properties, of all objects together, can be filtered by`,
    });
  }
  return { values: values as ParsedParameters<Shape, Field>['values'], fields, properties, faults };

  function parameterOf(name: string): Parameter | FaultOfName {
    const { base, word } = splitOperator(name);
    if (isField(base)) {
      const keep = (condition: Condition) => fields.push({ field: base, condition });
      return filterParameter(base, word, filterable.fields[base], keep);
    }
    const document = filterable.documents.find((one) => base.startsWith(`${one}.`));
    if (document !== undefined) {
      const property = base.slice(document.length + 1);
      if (property.split('.').length - 1 > NAME_DOTS_MAX) return TOO_MANY_DOTS;
      const keep = (condition: Condition) => properties.push({ document, name: property, condition });
      return filterParameter(base, word, PROPERTY_KIND, keep);
    }
    const schema = Object.hasOwn(shape, name) ? shape[name] : undefined;
    if (!schema) return { code: 'unknown_parameter', message: 'is not a known parameter' };
    return {
      key: name,
      schema,
      keep: (value) => {
        values[name] = value;
      },
    };
  }

  function isField(name: string): name is Field {
    return Object.hasOwn(filterable.fields, name);
  }
}

const PROPERTY_KIND: OperandKind = { operators: OPERATORS, item: z.string(), typed: true };

const TOO_MANY_DOTS: FaultOfName = {
  code: 'custom',
  message: `the name of a property to filter by may have at most ${NAME_DOTS_MAX} dots`,
};

function filterParameter(
  base: string,
  word: string | undefined,
  kind: OperandKind,
  keep: (condition: Condition) => void,
): Parameter | FaultOfName {
  const operator = kind.operators.find((known) => known === (word ?? 'eq'));
  if (operator === undefined) {
    return { code: 'unknown_operator', message: `has no such operator; there are ${kind.operators.join(', ')}` };
  }
  const schema = conditionText(operator, kind);
  return {
    key: `${base}[${operator}]`,
    // Only who writes an operator can mean the empty text.
    schema: word === undefined ? notEmpty.pipe(schema) : schema,
    keep: (value) => keep(value as Condition),
  };
}

/** What filters say, in whatever order they came. */
export function canonical(filters: readonly (FieldFilter | PropertyFilter)[]): readonly string[] {
  return filters.map((filter) => JSON.stringify(filter)).sort();
}

/** Throws what is at fault with a request's parameters, if anything is. */
export function refuseFaults(faults: readonly Fault[]): void {
  if (faults.length === 0) return;
  const detail = faults.length === 1 ? 'A parameter has a fault.' : `The parameters have ${faults.length} faults.`;
  throw new Problem('invalid_request', detail, { errors: faults });
}

function clamp(ms: number): number {
  return Math.min(Math.max(ms, TIME_MS_MIN), TIME_MS_MAX);
}
