/** The filters that have a field of their own in the form. */
export const FIELDS = ['event', 'type', 'userId', 'groupId', 'startDate', 'endDate'] as const;

export type Field = (typeof FIELDS)[number];

/** The operators of query-api; `eq` is left out of a parameter's name. */
export const OPERATORS = ['eq', 'ne', 'in', 'exists', 'lt', 'lte', 'gt', 'gte', 'prefix', 'contains'] as const;

/** A filter on a property or with an operator. */
export interface Condition {
  /** `properties.plan`, `userId`, … */
  readonly name: string;
  readonly operator: string;
  readonly value: string;
}

/** The parameters of `GET /events` as a form shows them. */
export interface Filters {
  readonly fields: Readonly<Record<Field, string>>;
  readonly conditions: readonly Condition[];
  /** All other parameters, as in an address. */
  readonly other: string;
}

const CONDITION = /^(.+?)(?:\[([A-Za-z]+)\])?$/s;
const DOCUMENT = /^(?:properties|context|traits)\./;

/** Parses parameters for a form. A cursor belongs to the old filters, so it is left out. */
export function parseFilters(params: URLSearchParams): Filters {
  const fields = Object.fromEntries(FIELDS.map((field) => [field, params.get(field) ?? ''])) as Record<Field, string>;
  const conditions: Condition[] = [];
  const other = new URLSearchParams();
  for (const [param, value] of params) {
    const [, name = param, operator = 'eq'] = CONDITION.exec(param) ?? [];
    if (param === 'cursor' || (FIELDS as readonly string[]).includes(param)) continue;
    if (DOCUMENT.test(param) || name !== param) conditions.push({ name, operator, value });
    else other.append(param, value);
  }
  return { fields, conditions, other: other.toString() };
}

/** Returns the parameters of a form; empty fields are left out. */
export function filterParams({ fields, conditions, other }: Filters): URLSearchParams {
  const params = new URLSearchParams();
  for (const field of FIELDS) if (fields[field].trim() !== '') params.append(field, fields[field].trim());
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
