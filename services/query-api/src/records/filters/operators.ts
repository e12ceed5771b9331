import type { InputError } from '@sluice/shared/http/problem';
import { z } from 'zod';
import { ITEMS_MAX } from '../../http/http.ts';

/** The operators of a filter, written in brackets behind its name: `amount[gte]`. Without brackets it is `eq`. */
export const OPERATORS = ['eq', 'ne', 'in', 'exists', 'lt', 'lte', 'gt', 'gte', 'prefix', 'contains'] as const;

export type Operator = (typeof OPERATORS)[number];

/** The operators that compare. */
export const COMPARISONS = ['lt', 'lte', 'gt', 'gte'] as const;

export type Comparison = (typeof COMPARISONS)[number];

/** An operator with its value. */
export type Condition =
  | { readonly operator: 'eq' | 'ne' | 'prefix' | 'contains'; readonly value: string }
  | { readonly operator: Comparison; readonly value: string | number }
  | { readonly operator: 'in'; readonly value: readonly string[] }
  | { readonly operator: 'exists'; readonly value: boolean };

/** A condition on a field of a record. */
export interface FieldFilter<Field extends string = string> {
  readonly field: Field;
  readonly condition: Condition;
}

/** The values that a filter compares with. */
export interface OperandKind {
  readonly operators: readonly Operator[];
  /** Reads a value of `eq`, `ne` and `in`. */
  readonly item: z.ZodType<string, string>;
  /** Whether numbers are compared as numbers. Otherwise every value is text. */
  readonly typed: boolean;
  /** Returns what reads the value of a comparison. Default: as `typed` says. */
  readonly compared?: (operator: Comparison) => z.ZodType<string | number, string>;
  /** How many values a request may have, in all filters of this kind together, and the error of more. Default: any number. */
  readonly most?: { readonly values: number; readonly error: InputError };
}

/** The name of a filter parameter, split into what it filters and its operator. */
export interface OperatorName {
  readonly base: string;
  /** The word in the brackets, which may be no operator; `undefined` without brackets. */
  readonly word: string | undefined;
}

const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/**
 * Splits the operator off a parameter's name. Only letters in brackets at the very end are an operator: `a[0]` is a
 * name, and `a[lt][eq]` is the operator `eq` on the name `a[lt]`.
 */
export function splitOperator(name: string): OperatorName {
  const match = /^(.*)\[([A-Za-z]+)\]$/s.exec(name);
  return match ? { base: match[1] ?? '', word: match[2] } : { base: name, word: undefined };
}

/** Text with at least one character. */
export const notEmpty = z.string().min(1, 'must not be empty');

/** Returns the schema that reads the value of a filter with this operator. */
export function conditionSchema(
  operator: Operator,
  { item, typed, compared }: Pick<OperandKind, 'item' | 'typed' | 'compared'>,
): z.ZodType<Condition, string> {
  switch (operator) {
    case 'eq':
    case 'ne':
      return item.transform((value) => ({ operator, value }));
    case 'in':
      return listOf(item).transform((value) => ({ operator, value }));
    case 'exists':
      return z
        .enum(['true', 'false'], 'must be true or false')
        .transform((value) => ({ operator, value: value === 'true' }));
    case 'prefix':
    case 'contains':
      return notEmpty.transform((value) => ({ operator, value }));
    default:
      return (compared?.(operator) ?? (typed ? numberOrText : notEmpty)).transform((value) => ({ operator, value }));
  }
}

/** A JSON number is a number, a JSON string is the text in its quotes, anything else is text. */
const numberOrText = notEmpty.transform((text, context) => {
  if (!JSON_NUMBER.test(text)) return unquoted(text);
  const number = Number(text);
  const error = errorOfNumber(text, number);
  if (error === undefined) return number;
  context.addIssue({ code: 'custom', message: error });
  return z.NEVER;
});

function errorOfNumber(text: string, number: number): string | undefined {
  if (!Number.isFinite(number)) return 'is too large for a 64-bit float';
  const isInteger = /^-?\d+$/.test(text);
  const exact = !isInteger || text === String(number) || BigInt(text) === BigInt(number);
  return exact ? undefined : `has more digits than a 64-bit float holds; the nearest number is ${number}`;
}

function unquoted(text: string): string {
  if (!text.startsWith('"')) return text;
  try {
    return (JSON.parse(text) as string).toWellFormed();
  } catch {
    return text;
  }
}

/** Returns the schema of items between commas: up to {@link ITEMS_MAX}, with `\,` for a comma and `\\` for a backslash. */
export function listOf(item: z.ZodType<string, string>): z.ZodType<readonly string[], string> {
  const list = notEmpty.transform((text, context) => {
    const items = splitItems(text);
    if (items) return items;
    const message = 'has a backslash that escapes nothing; write \\\\ for a backslash and \\, for a comma';
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  });
  return list.pipe(z.array(item).max(ITEMS_MAX, `must have at most ${ITEMS_MAX} items`));
}

/**
 * The items between the commas. `\,` is a comma inside an item, `\\` a backslash; `undefined` with another backslash.
 */
function splitItems(text: string): string[] | undefined {
  const items = [''];
  for (const [token] of text.matchAll(/\\?./gsu)) {
    if (token === ',') items.push('');
    else if (token === '\\,' || token === '\\\\') items.push(`${items.pop()}${token[1]}`);
    else if (token.startsWith('\\')) return undefined;
    else items.push(`${items.pop()}${token}`);
  }
  return items;
}
