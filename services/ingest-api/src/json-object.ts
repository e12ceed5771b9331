import { z } from 'zod';

declare global {
  interface JSON {
    /** In the engine since V8 11.4, not yet in TypeScript's library. */
    rawJSON(text: string): unknown;
  }
}

/** How deep objects and arrays may nest; the object itself is level 1. */
export const JSON_DEPTH_MAX = 32;

/**
 * A free-form JSON object, taken as it is: its names are data, so none of them is looked at. Refused are nesting deeper
 * than {@link JSON_DEPTH_MAX}, and what would not come back as it went in: numbers too large for a double, and names
 * that UTF-8 cannot hold.
 */
export const jsonObject = z
  .custom<Readonly<Record<string, unknown>>>(isJsonObject, 'Invalid input: expected object')
  .superRefine((object, context) => {
    const fault = findFault(object, JSON_DEPTH_MAX);
    if (fault) context.addIssue({ code: 'custom', message: fault });
  })
  .meta({ type: 'object', description: `Any JSON object, to depth ${JSON_DEPTH_MAX}.` });

function isJsonObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function findFault(value: unknown, levels: number): string | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? undefined : 'holds a number too large for a double';
  if (typeof value !== 'object' || value === null) return undefined;
  if (levels === 0) return `is nested deeper than ${JSON_DEPTH_MAX} levels`;
  if (!Array.isArray(value) && !Object.keys(value).every((name) => name.isWellFormed())) {
    return 'holds a name with a lone surrogate, which is not Unicode text';
  }
  for (const member of Array.isArray(value) ? value : Object.values(value)) {
    const fault = findFault(member, levels - 1);
    if (fault) return fault;
  }
  return undefined;
}

/** JSON text that gives back an equal value: unlike JSON.stringify alone, it keeps the sign of a negative zero. */
export function encodeJson(value: unknown): string {
  const text = JSON.stringify(value);
  return hasNegativeZero(value) ? JSON.stringify(value, keepNegativeZero) : text;
}

function hasNegativeZero(value: unknown): boolean {
  if (typeof value === 'number') return Object.is(value, -0);
  if (typeof value !== 'object' || value === null) return false;
  return (Array.isArray(value) ? value : Object.values(value)).some(hasNegativeZero);
}

const NEGATIVE_ZERO = JSON.rawJSON('-0');

function keepNegativeZero(_name: string, value: unknown): unknown {
  return Object.is(value, -0) ? NEGATIVE_ZERO : value;
}
