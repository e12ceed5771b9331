import type { RawNumber } from '@sluice/shared/json';
import { z } from 'zod';

/** How deep objects and arrays may nest; the object itself is level 1. */
export const JSON_DEPTH_MAX = 32;

/** What a look through a JSON value found: nothing, a negative zero, or why it is refused. */
type Finding = 'negative zero' | keyof typeof FAULTS | undefined;

export const TOO_DEEP = `is nested deeper than ${JSON_DEPTH_MAX} levels`;

const FAULTS = {
  number: 'holds a number too large for a double',
  depth: TOO_DEEP,
  name: 'holds a name with a lone surrogate, which is not Unicode text',
} as const;

/**
 * A free-form JSON object, taken as it is: its names are data, so none of them is looked at. Refused are nesting deeper
 * than {@link JSON_DEPTH_MAX}, and what would not come back as it went in: numbers too large for a double, and names
 * that UTF-8 cannot hold.
 */
export const jsonObject = z
  .custom<Readonly<Record<string, unknown>>>(isJsonObject, 'Invalid input: expected object')
  .superRefine((object, context) => {
    const finding = look(object, JSON_DEPTH_MAX);
    if (isFault(finding)) context.addIssue({ code: 'custom', message: FAULTS[finding] });
  })
  .meta({ type: 'object', description: `Any JSON object, to depth ${JSON_DEPTH_MAX}.` });

/** Whether the value is an object of JSON: no array, not null, and no number that keeps its digits. */
export function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value);
}

/** Why {@link jsonObject} refuses an object that has this member; `undefined` when it does not. */
export function faultOfMember(name: string, value: unknown): string | undefined {
  const finding = name.isWellFormed() ? look(value, JSON_DEPTH_MAX - 1) : 'name';
  return isFault(finding) ? FAULTS[finding] : undefined;
}

/** The JSON text of what {@link jsonObject} accepts, `undefined` for anything else; it is walked through only once. */
export function jsonObjectText(value: unknown): string | undefined {
  if (!isJsonObject(value)) return undefined;
  const finding = look(value, JSON_DEPTH_MAX);
  return isFault(finding) ? undefined : stringify(value, finding === 'negative zero');
}

/** JSON text that gives back an equal value: unlike JSON.stringify alone, it keeps the sign of a negative zero. */
export function encodeJson(value: unknown): string {
  return stringify(value, look(value, Number.POSITIVE_INFINITY) === 'negative zero');
}

function isFault(finding: Finding): finding is keyof typeof FAULTS {
  return finding !== undefined && finding !== 'negative zero';
}

/** The first fault, else whether there is a negative zero. */
function look(value: unknown, levels: number): Finding {
  if (typeof value === 'number') return lookAtNumber(value);
  if (typeof value !== 'object' || value === null || JSON.isRawJSON(value)) return undefined;
  if (levels === 0) return 'depth';
  let found: Finding;
  if (Array.isArray(value)) {
    for (const member of value) {
      const finding = look(member, levels - 1);
      if (isFault(finding)) return finding;
      found ??= finding;
    }
    return found;
  }
  const names = Object.keys(value);
  for (const name of names) if (!name.isWellFormed()) return 'name';
  for (const name of names) {
    const finding = look((value as Readonly<Record<string, unknown>>)[name], levels - 1);
    if (isFault(finding)) return finding;
    found ??= finding;
  }
  return found;
}

function lookAtNumber(value: number): Finding {
  if (!Number.isFinite(value)) return 'number';
  return Object.is(value, -0) ? 'negative zero' : undefined;
}

function stringify(value: unknown, negativeZero: boolean): string {
  return negativeZero ? JSON.stringify(value, keepNegativeZero) : JSON.stringify(value);
}

const NEGATIVE_ZERO: RawNumber = JSON.rawJSON('-0');

function keepNegativeZero(_name: string, value: unknown): unknown {
  return Object.is(value, -0) ? NEGATIVE_ZERO : value;
}
