/** The operators of query-api; `eq` is left out of a parameter's name. */
export const OPERATORS = ['eq', 'ne', 'in', 'exists', 'lt', 'lte', 'gt', 'gte', 'prefix', 'contains'] as const;

/** A filter on a property or with an operator. */
export interface Condition {
  /** `properties.plan`, `userId`, … */
  readonly name: string;
  readonly operator: string;
  readonly value: string;
}

/** The parameters of a page as a form shows them. */
export interface Filters {
  /** The values of the parameters that have a field of their own; empty without one. */
  readonly fields: Readonly<Record<string, string>>;
  readonly conditions: readonly Condition[];
  /** All other parameters, as in an address. */
  readonly other: string;
}

const CONDITION = /^(.+?)(?:\[([A-Za-z]+)\])?$/s;
const DOCUMENT = /^(?:properties|context|traits)\./;

/**
 * Parses parameters for a form. A cursor belongs to the old filters, so it is left out.
 *
 * @param names the parameters that have a field of their own
 */
export function parseFilters(params: URLSearchParams, names: readonly string[]): Filters {
  const fields = Object.fromEntries(names.map((name) => [name, params.get(name) ?? '']));
  const conditions: Condition[] = [];
  const other = new URLSearchParams();
  for (const [param, value] of params) {
    if (param === 'cursor' || names.includes(param)) continue;
    const [, name = param, operator = 'eq'] = CONDITION.exec(param) ?? [];
    if (DOCUMENT.test(param) || name !== param) conditions.push({ name, operator, value });
    else other.append(param, value);
  }
  return { fields, conditions, other: other.toString() };
}

/** Returns the parameters of a form; empty fields are left out. */
export function filterParams({ fields, conditions, other }: Filters): URLSearchParams {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) if (value.trim() !== '') params.append(name, value.trim());
  for (const { name, operator, value } of conditions) {
    const base = name.trim();
    // The `[lt]` of a name that ends so would be its operator.
    const isPlain = operator === 'eq' && !/\[[A-Za-z]+\]$/.test(base);
    if (base !== '') params.append(isPlain ? base : `${base}[${operator}]`, value);
  }
  for (const [name, value] of new URLSearchParams(other)) params.append(name, value);
  return params;
}

/** Returns a copy of the parameters without some of them. */
export function without(params: URLSearchParams, ...names: readonly string[]): URLSearchParams {
  return new URLSearchParams([...params].filter(([name]) => !names.includes(name)));
}
