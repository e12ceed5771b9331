import { type Fault, Problem } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import { parseTimestamp } from '@sluice/shared/timestamp';
import { z } from 'zod';
import { NAME_DOTS_MAX, PROPERTY_FILTERS_MAX, type PropertyFilter } from './property-filter.ts';

export const LIMIT_DEFAULT = 100;
export const LIMIT_MAX = 1_000;

const PROPERTY_PREFIX = 'properties.';

/** The store's range of times; nothing outside it is ever stored. */
const TIME_MS_MIN = Date.UTC(1900, 0, 1);
const TIME_MS_MAX = Date.UTC(2299, 11, 31);

/** A `+` that was sent unencoded in the zone of a timestamp arrives as a space. */
const ZONE_AFTER_SPACE = /(:\d{2}(?:[.,]\d+)?) (\d{2}:?\d{2})$/;

/** The schemas of a route's parameters, each of one text. */
export type ParameterShape = Readonly<Record<string, z.ZodType<unknown, string>>>;

export interface ParsedParameters<Shape extends ParameterShape> {
  /** What was given and is valid. */
  readonly values: { readonly [Name in keyof Shape]?: z.output<Shape[Name]> };
  readonly properties: readonly PropertyFilter[];
  readonly faults: readonly Fault[];
}

/** Text that must match as it is. */
const filterText = z.string().min(1, 'must not be empty');

/** Equality with a text. */
export function filterBy(description: string) {
  return filterText.meta({ description });
}

/** `nextCursor` of a page. `goesWith`: what has to be the same as on that page. */
export function cursorText(goesWith: string) {
  return filterText.meta({ description: `\`nextCursor\` of the page before, with the same ${goesWith}.` });
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
export function parseParameters<Shape extends ParameterShape>(
  shape: Shape,
  query: QueryParameters,
): ParsedParameters<Shape> {
  const values: Partial<Record<string, unknown>> = {};
  const properties: PropertyFilter[] = [];
  const faults: Fault[] = [];
  for (const [name, texts] of Object.entries(query)) {
    const path = name.slice(0, 200);
    const schema = Object.hasOwn(shape, name) ? shape[name] : propertyFilterSchema(name);
    if (!schema) faults.push({ path, code: 'unknown_parameter', message: 'is not a known parameter' });
    else if (texts.length > 1) faults.push({ path, code: 'repeated', message: 'must be given once' });
    else {
      const result = schema.safeParse(texts[0]);
      if (!result.success) {
        faults.push(...result.error.issues.map(({ code, message }) => ({ path, code, message })));
      } else if (Object.hasOwn(shape, name)) values[name] = result.data;
      else properties.push({ name: name.slice(PROPERTY_PREFIX.length), value: result.data as string });
    }
  }
  if (properties.length > PROPERTY_FILTERS_MAX) {
    faults.push({
      path: 'properties',
      code: 'too_many',
      message: `at most ${PROPERTY_FILTERS_MAX} can be filtered by`,
    });
  }
  return { values: values as ParsedParameters<Shape>['values'], properties, faults };
}

/** Throws what is at fault with a request's parameters, if anything is. */
export function refuseFaults(faults: readonly Fault[]): void {
  if (faults.length === 0) return;
  const detail = faults.length === 1 ? 'A parameter has a fault.' : `The parameters have ${faults.length} faults.`;
  throw new Problem('invalid_request', detail, { errors: faults });
}

function propertyFilterSchema(name: string): z.ZodType<string, string> | undefined {
  if (!name.startsWith(PROPERTY_PREFIX)) return undefined;
  const dots = name.split('.').length - 2;
  const message = `the name of a property to filter by may have at most ${NAME_DOTS_MAX} dots`;
  return dots > NAME_DOTS_MAX ? z.string().refine(() => false, message) : filterText;
}

function clamp(ms: number): number {
  return Math.min(Math.max(ms, TIME_MS_MIN), TIME_MS_MAX);
}
