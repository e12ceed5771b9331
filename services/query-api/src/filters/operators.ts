import { z } from 'zod';

/** What can stand in brackets behind the name of a filter: `amount[gte]`. Without one it is `eq`. */
export const OPERATORS = ['eq', 'ne', 'in', 'exists', 'lt', 'lte', 'gt', 'gte', 'prefix', 'contains'] as const;

export type Operator = (typeof OPERATORS)[number];

/** The operators that compare, as SQL writes them. */
export const COMPARISONS = { lt: '<', lte: '<=', gt: '>', gte: '>=' } as const;

export type Comparison = keyof typeof COMPARISONS;

/** What a filter says of a value. */
export type Condition =
  | { readonly operator: 'eq' | 'ne' | 'prefix' | 'contains'; readonly value: string }
  | { readonly operator: Comparison; readonly value: string | number }
  | { readonly operator: 'in'; readonly value: readonly string[] }
  | { readonly operator: 'exists'; readonly value: boolean };

/** How many items a list behind `[in]` may have. */
export const ITEMS_MAX = 100;

/** What kind of value conditions are about. */
export interface OperandKind {
  readonly operators: readonly Operator[];
  /** A value to be equal to. */
  readonly item: z.ZodType<string, string>;
  /** Whether there are numbers and texts, which are compared with their own kind only. */
  readonly typed: boolean;
}

/** A parameter's name, taken apart. */
export interface OperatorName {
  readonly base: string;
  /** The word in the brackets, an operator or not; `undefined` when there is none. */
  readonly word: string | undefined;
}

const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** Only letters in brackets at the very end are an operator: `a[0]` is a name, and `a[lt][eq]` says `eq` of `a[lt]`. */
export function splitOperator(name: string): OperatorName {
  const match = /^(.*)\[([A-Za-z]+)\]$/s.exec(name);
  return match ? { base: match[1] ?? '', word: match[2] } : { base: name, word: undefined };
}

/** Text that must not be empty. */
export const notEmpty = z.string().min(1, 'must not be empty');

/** Reads the value of a filter with an operator. */
export function conditionText(
  operator: Operator,
  { item, typed }: Pick<OperandKind, 'item' | 'typed'>,
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
      return (typed ? numberOrText : notEmpty).transform((value) => ({ operator, value }));
  }
}

/** A JSON number is a number, a JSON string what it means, anything else the text that it is. */
const numberOrText = notEmpty.transform((text, context) => {
  if (!JSON_NUMBER.test(text)) return unquoted(text);
  const number = Number(text);
  const isInteger = /^-?\d+$/.test(text);
  const exact = !isInteger || text === String(number) || (Number.isFinite(number) && BigInt(text) === BigInt(number));
  if (Number.isFinite(number) && exact) return number;
  context.addIssue({ code: 'custom', message: 'must be a number that an IEEE double can be' });
  return z.NEVER;
});

function unquoted(text: string): string {
  if (!text.startsWith('"')) return text;
  try {
    return (JSON.parse(text) as string).toWellFormed();
  } catch {
    return text;
  }
}

function listOf(item: z.ZodType<string, string>): z.ZodType<readonly string[], string> {
  const list = notEmpty.transform((text, context) => {
    const items = itemsOf(text);
    if (items) return items;
    context.addIssue({ code: 'custom', message: 'may have a backslash only before a comma or a backslash' });
    return z.NEVER;
  });
  return list.pipe(z.array(item).max(ITEMS_MAX, `must have at most ${ITEMS_MAX} items`));
}

/** The items between the commas. `\,` is a comma inside an item, `\\` a backslash; another backslash is `undefined`. */
function itemsOf(text: string): string[] | undefined {
  const items = [''];
  for (const [token] of text.matchAll(/\\?./gsu)) {
    if (token === ',') items.push('');
    else if (token === '\\,' || token === '\\\\') items.push(`${items.pop()}${token[1]}`);
    else if (token.startsWith('\\')) return undefined;
    else items.push(`${items.pop()}${token}`);
  }
  return items;
}
