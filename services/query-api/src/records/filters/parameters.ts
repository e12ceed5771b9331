import { type InputError, Problem } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import { z } from 'zod';
import { NAME_DOTS_MAX, PROPERTY_FILTERS_MAX } from '../../http/http.ts';
import {
  type Condition,
  conditionSchema,
  type FieldFilter,
  notEmpty,
  OPERATORS,
  type OperandKind,
  splitOperator,
} from './operators.ts';
import type { ParameterShape } from './parameter-schemas.ts';
import type { PropertyFilter } from './property-filter.ts';

/** How much of a parameter's name an error repeats. */
const PATH_CHARACTERS_MAX = 200;

/** What a route can filter by. */
export interface Filterable<Field extends string, Document extends string> {
  /** Parameters that take operators; without one they mean `eq`. */
  readonly fields: Readonly<Record<Field, OperandKind>>;
  /** The JSON objects in `<document>.<name>`. */
  readonly documents: readonly Document[];
}

export interface ParsedParameters<Shape extends ParameterShape, Field extends string, Document extends string> {
  /** The valid parameters, except filters. */
  readonly values: { readonly [Name in Exclude<keyof Shape, Field>]?: z.output<Shape[Name]> };
  readonly fields: readonly FieldFilter<Field>[];
  readonly properties: readonly PropertyFilter<Document>[];
  readonly errors: readonly InputError[];
}

/** A known parameter: how to read its value, and where to keep it. */
interface Parameter {
  /** The same for every spelling of the same parameter. */
  readonly key: string;
  readonly schema: z.ZodType<unknown, string>;
  keep(value: unknown): void;
}

type NamelessError = Pick<InputError, 'code' | 'message'>;

/** Parses the parameters of a query strictly: each is known, given once and valid, or an error. */
export function parseParameters<Shape extends ParameterShape, Field extends string, Document extends string>(
  shape: Shape,
  filterable: Filterable<Field, Document>,
  query: QueryParameters,
): ParsedParameters<Shape, Field, Document> {
  const values: Partial<Record<string, unknown>> = {};
  const fields: FieldFilter<Field>[] = [];
  const properties: PropertyFilter<Document>[] = [];
  const errors: InputError[] = [];
  const seen = new Set<string>();
  /** Also those that are not valid. */
  let propertyCount = 0;
  for (const [name, texts] of Object.entries(query)) {
    const path = name.slice(0, PATH_CHARACTERS_MAX);
    const { base, word } = splitOperator(name);
    const property = propertyOf(base);
    if (property) propertyCount += 1;
    if (property && property.name.split('.').length - 1 > NAME_DOTS_MAX) errors.push({ path, ...TOO_MANY_DOTS });
    const parameter = findParameter(name, base, word, property);
    if ('message' in parameter) errors.push({ path, ...parameter });
    else if (texts.length > 1 || seen.has(parameter.key)) errors.push({ path, ...REPEATED });
    else {
      const result = parameter.schema.safeParse(texts[0]);
      if (result.success) parameter.keep(result.data);
      else errors.push(...result.error.issues.map(({ code, message }) => ({ path, code, message })));
    }
    if ('key' in parameter) seen.add(parameter.key);
  }
  if (propertyCount > PROPERTY_FILTERS_MAX) errors.push(TOO_MANY_PROPERTIES);
  for (const [{ most }, ofKind] of Map.groupBy(fields, ({ field }) => filterable.fields[field])) {
    const count = ofKind.flatMap(({ condition }) => condition.value).length;
    if (most && count > most.values) errors.push(most.error);
  }
  return { values: values as ParsedParameters<Shape, Field, Document>['values'], fields, properties, errors };

  type PropertyName = Pick<PropertyFilter<Document>, 'document' | 'name'>;

  function findParameter(
    name: string,
    base: string,
    word: string | undefined,
    property: PropertyName | undefined,
  ): Parameter | NamelessError {
    if (isField(base)) {
      const keep = (condition: Condition) => fields.push({ field: base, condition });
      return filterParameter(base, word, filterable.fields[base], keep);
    }
    if (property) {
      const keep = (condition: Condition) => properties.push({ ...property, condition });
      return filterParameter(base, word, PROPERTY_KIND, keep);
    }
    const schema = Object.hasOwn(shape, name) ? shape[name] : undefined;
    if (!schema) return UNKNOWN_PARAMETER;
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

  function propertyOf(name: string): PropertyName | undefined {
    const document = isField(name) ? undefined : filterable.documents.find((one) => name.startsWith(`${one}.`));
    return document === undefined ? undefined : { document, name: name.slice(document.length + 1) };
  }
}

const PROPERTY_KIND: OperandKind = { operators: OPERATORS, item: z.string(), typed: true };

const REPEATED: NamelessError = { code: 'repeated', message: 'must be given once' };

const UNKNOWN_PARAMETER: NamelessError = {
  code: 'unknown_parameter',
  message: 'unknown parameter; /docs lists those of this path',
};

const TOO_MANY_DOTS: NamelessError = {
  code: 'custom',
  message: `the name of a property to filter by may have at most ${NAME_DOTS_MAX} dots`,
};

const TOO_MANY_PROPERTIES: InputError = {
  path: 'properties',
  code: 'too_many',
  message: `a request may have at most ${PROPERTY_FILTERS_MAX} filters on properties, of all objects together`,
};

function filterParameter(
  base: string,
  word: string | undefined,
  kind: OperandKind,
  keep: (condition: Condition) => void,
): Parameter | NamelessError {
  const operator = kind.operators.find((known) => known === (word ?? 'eq'));
  if (operator === undefined) {
    return { code: 'unknown_operator', message: `unknown operator; use one of ${kind.operators.join(', ')}` };
  }
  const schema = conditionSchema(operator, kind);
  return {
    key: `${base}[${operator}]`,
    // Without an operator an empty value is more likely a mistake than the empty text.
    schema: word === undefined ? notEmpty.pipe(schema) : schema,
    keep: (value) => keep(value as Condition),
  };
}

/** Returns filters in a form that does not depend on their order. */
export function canonicalFilters(filters: readonly (FieldFilter | PropertyFilter)[]): readonly string[] {
  return filters.map((filter) => JSON.stringify(filter)).sort();
}

/**
 * Refuses every parameter: for a path that takes none.
 *
 * @throws {Problem} `invalid_request`
 */
export function refuseParameters(query: QueryParameters): void {
  refuseErrors(Object.keys(query).map((name) => ({ path: name.slice(0, PATH_CHARACTERS_MAX), ...UNKNOWN_PARAMETER })));
}

/** @throws {Problem} `invalid_request` with the errors of a request's parameters, if there are any */
export function refuseErrors(errors: readonly InputError[]): void {
  if (errors.length === 0) return;
  const detail = errors.length === 1 ? 'A parameter has an error.' : `The parameters have ${errors.length} errors.`;
  throw new Problem('invalid_request', detail, { errors });
}
