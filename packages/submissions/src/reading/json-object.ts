import type { RawNumber } from '@sluice/shared/text/json';
import { z } from 'zod';

/** How many levels of objects and arrays may nest; the object itself is level 1. */
export const JSON_DEPTH_MAX = 32;

/** What a walk through a JSON value finds: nothing, a negative zero, or why the value is refused. */
type Finding = 'negative zero' | keyof typeof ERRORS | undefined;

export const TOO_DEEP = `is nested deeper than ${JSON_DEPTH_MAX} levels`;

export const NUMBER_TOO_LARGE = 'a number that is too large for a 64-bit float';

const ERRORS = {
  number: `holds ${NUMBER_TOO_LARGE}`,
  depth: TOO_DEEP,
  name: 'holds a name with a lone surrogate, which is not Unicode text',
} as const;

/**
 * Any JSON object; its names are data, so every name is allowed. Refused are objects that nest deeper than
 * {@link JSON_DEPTH_MAX}, and those that would be returned otherwise than they came: with numbers too large for a 64-bit
 * float, or with names that UTF-8 cannot hold.
 */
export const jsonObject = z
  .custom<Readonly<Record<string, unknown>>>(isJsonObject, 'Invalid input: expected object')
  .superRefine((object, context) => {
    const finding = inspect(object, JSON_DEPTH_MAX);
    if (isError(finding)) context.addIssue({ code: 'custom', message: ERRORS[finding] });
  })
  .meta({ type: 'object', description: `Any JSON object, to depth ${JSON_DEPTH_MAX}.` });

/** Whether the value is a JSON object: no array, not null, and no {@link RawNumber}. */
export function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !JSON.isRawJSON(value);
}

/** Returns why {@link jsonObject} refuses an object with this member; `undefined` when it does not. */
export function errorOfMember(name: string, value: unknown): string | undefined {
  const finding = name.isWellFormed() ? inspect(value, JSON_DEPTH_MAX - 1) : 'name';
  return isError(finding) ? ERRORS[finding] : undefined;
}

/** Returns why {@link jsonObject} refuses an object; `undefined` when it does not. */
export function errorOfObject(object: Readonly<Record<string, unknown>>): string | undefined {
  const finding = inspect(object, JSON_DEPTH_MAX);
  return isError(finding) ? ERRORS[finding] : undefined;
}

/** A JSON object that is not parsed, because {@link jsonObject} accepts it and its text can be stored as it is. */
export class ObjectText {
  readonly #body: Buffer;
  readonly #start: number;
  readonly #end: number;

  /** The object is at `start` to `end` of the body. */
  constructor(body: Buffer, start: number, end: number) {
    this.#body = body;
    this.#start = start;
    this.#end = end;
  }

  get json(): string {
    return this.#body.toString('utf8', this.#start, this.#end);
  }

  parse(): Readonly<Record<string, unknown>> {
    return JSON.parse(this.json);
  }
}

/** Returns the JSON text of what {@link jsonObject} accepts, else `undefined`. It walks through the value once. */
export function jsonObjectText(value: unknown): string | undefined {
  if (value instanceof ObjectText) return value.json;
  if (!isJsonObject(value)) return undefined;
  const finding = inspect(value, JSON_DEPTH_MAX);
  return isError(finding) ? undefined : stringify(value, finding === 'negative zero');
}

/** Writes JSON text that parses to an equal value. Unlike JSON.stringify, it keeps the sign of a negative zero. */
export function encodeJson(value: unknown): string {
  return stringify(value, inspect(value, Number.POSITIVE_INFINITY) === 'negative zero');
}

function isError(finding: Finding): finding is keyof typeof ERRORS {
  return finding !== undefined && finding !== 'negative zero';
}

/** Returns the first error, else whether there is a negative zero. */
function inspect(value: unknown, levels: number): Finding {
  if (typeof value === 'number') return inspectNumber(value);
  if (typeof value !== 'object' || value === null || JSON.isRawJSON(value)) return undefined;
  if (levels === 0) return 'depth';
  let found: Finding;
  if (Array.isArray(value)) {
    for (const member of value) {
      const finding = inspect(member, levels - 1);
      if (isError(finding)) return finding;
      found ??= finding;
    }
    return found;
  }
  const names = Object.keys(value);
  for (const name of names) if (!name.isWellFormed()) return 'name';
  for (const name of names) {
    const finding = inspect((value as Readonly<Record<string, unknown>>)[name], levels - 1);
    if (isError(finding)) return finding;
    found ??= finding;
  }
  return found;
}

function inspectNumber(value: number): Finding {
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
