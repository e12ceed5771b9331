import { parseTimestamp } from '@sluice/shared/text/timestamp';
import { z } from 'zod';
import { LIMIT_DEFAULT, LIMIT_MAX } from '../../http/limits.ts';
import { notEmpty } from './operators.ts';

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
