import { isFilterName, isNumber, isTimeName, labelOfName, without } from '../base/base.ts';

/** The operators of query-api; `eq` is left out of a parameter's name. */
const OPERATOR_LABELS: Readonly<Record<string, string>> = {
  eq: 'is',
  ne: 'is not',
  in: 'is one of',
  exists: 'exists',
  lt: '<',
  lte: '≤',
  gt: '>',
  gte: '≥',
  prefix: 'begins with',
  contains: 'contains',
};

const TIME_LABELS: Readonly<Record<string, string>> = { gte: 'since', gt: 'after', lt: 'before', lte: 'until' };

const SEGMENT_LABELS: Readonly<Record<string, string>> = { eq: 'is', ne: 'is not', in: 'is one of' };

function operatorLabelsOf(name: string): Readonly<Record<string, string>> {
  if (name === 'segment') return SEGMENT_LABELS;
  return isTimeName(name) ? TIME_LABELS : OPERATOR_LABELS;
}

/** Returns the operators that a filter of this name may have, the usual one first, each with its label. */
export function operatorsOf(name: string): readonly (readonly [operator: string, label: string])[] {
  return Object.entries(operatorLabelsOf(name));
}

/** Returns a filter of another name; an operator that this one cannot have is its usual one. */
export function renamed(condition: Condition, name: string): Condition {
  const labels = operatorLabelsOf(stepOf(name).name);
  const [usual] = Object.keys(labels);
  // One that query-api does not know stays where all others are possible.
  const isKept = labels === OPERATOR_LABELS || Object.hasOwn(labels, condition.operator);
  return { ...condition, name, operator: isKept || usual === undefined ? condition.operator : usual };
}

/** Returns filters as a person reads them: `Event is signed_up, Organization: plan is one of pro,team`. */
export function textOfFilters(params: URLSearchParams): string {
  const { conditions, other } = parseFilters(params, []);
  return [
    ...conditions.map(({ name, operator, value }) => {
      const { step, name: own } = stepOf(name);
      const label = new Map(operatorsOf(own)).get(operator) ?? operator;
      const text = operator === 'exists' ? (value === 'false' ? 'does not exist' : label) : `${label} ${value}`;
      return `${step === undefined ? '' : `Step ${step}: `}${labelOfName(own)} ${text}`;
    }),
    ...other.map(([name, value]) => `${name}=${value}`),
  ].join(', ');
}

/** A filter on a property, on a field, or with an operator. */
export interface Condition {
  /** `properties.plan`, `userId`, `step2.properties.plan`, … */
  readonly name: string;
  readonly operator: string;
  readonly value: string;
}

/** The parameters of a page as a form shows them. */
export interface Filters {
  /** The values of the parameters that have a field of their own; empty without one. */
  readonly fields: Readonly<Record<string, string>>;
  readonly conditions: readonly Condition[];
  /** All other parameters, repeated ones too. */
  readonly other: readonly (readonly [name: string, value: string])[];
}

const CONDITION = /^(.+?)(?:\[([A-Za-z]+)\])?$/s;

const STEP = /^step(\d+)\.(.*)$/s;

/** Splits the name of a condition on one step of a funnel; the step of any other is `undefined`. */
export function stepOf(name: string): { readonly step: number | undefined; readonly name: string } {
  const [, step, rest] = STEP.exec(name) ?? [];
  return step === undefined || rest === undefined ? { step: undefined, name } : { step: Number(step), name: rest };
}

/**
 * Parses parameters for a form. A cursor belongs to the old filters, so it is left out.
 *
 * @param names the parameters that have a field of their own
 */
export function parseFilters(params: URLSearchParams, names: readonly string[]): Filters {
  const fields: Record<string, string> = Object.fromEntries(names.map((name) => [name, '']));
  const conditions: Condition[] = [];
  const other: [string, string][] = [];
  const seen = new Set<string>();
  for (const [param, value] of params) {
    if (param === 'cursor') continue;
    const [, name = param, operator = 'eq'] = CONDITION.exec(param) ?? [];
    const isRepeated = seen.has(param);
    seen.add(param);
    if (isRepeated) other.push([param, value]);
    else if (names.includes(param)) fields[param] = value;
    else if (name !== param || isFilterName(stepOf(param).name)) conditions.push({ name, operator, value });
    else other.push([param, value]);
  }
  return { fields, conditions, other };
}

/** Returns the parameters of a form; empty fields are left out. */
export function filterParams({ fields, conditions, other }: Filters): URLSearchParams {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) if (value.trim() !== '') params.append(name, value.trim());
  for (const { name, operator, value } of conditions) {
    if (name.trim() !== '') params.append(parameterOf(name.trim(), operator), value);
  }
  for (const [name, value] of other) params.append(name, value);
  return params;
}

/** Whether an address has a filter already. */
export function isApplied({ name, operator, value }: Condition, params: URLSearchParams): boolean {
  return [parameterOf(name.trim(), operator), `${name.trim()}[${operator}]`].some((one) => params.get(one) === value);
}

/** Returns the name of a filter's parameter. */
function parameterOf(name: string, operator: string): string {
  // The `[lt]` of a name that ends so would be its operator.
  const isPlain = operator === 'eq' && !/\[[A-Za-z]+\]$/.test(name);
  return isPlain ? name : `${name}[${operator}]`;
}

/** Returns the parameters that say which events are meant: filters, of any operator, and whose the events of visitors are. */
export function eventFilters(params: URLSearchParams): URLSearchParams {
  const isMeant = (param: string) => param === IDENTITY || isFilterName(CONDITION.exec(param)?.[1] ?? '');
  return new URLSearchParams([...params].filter(([param]) => isMeant(param)));
}

/** The parameter that says whose the events of anonymous visitors are. */
export const IDENTITY = 'identity';

/**
 * Whether a value of a group stands for integers of other digits: query-api groups integers beyond 64 bits as doubles. A comparison
 * finds them, and equality would not.
 */
function isRounded(value: unknown): boolean {
  if (!isNumber(value)) return false;
  const double = Number(JSON.stringify(value));
  return double >= 1e19 || double <= -1e18;
}

/** Returns the parameters with one more filter: that a field or property has this value, `null` for none. */
export function withValue(params: URLSearchParams, name: string, value: unknown): URLSearchParams {
  const filtered = without(params, name, `${name}[eq]`, `${name}[exists]`);
  if (value === null) filtered.set(parameterOf(name, 'exists'), 'false');
  else if (value === '') filtered.set(`${name}[eq]`, '');
  else if (isRounded(value))
    for (const operator of ['gte', 'lte']) filtered.set(`${name}[${operator}]`, JSON.stringify(value));
  else filtered.set(parameterOf(name, 'eq'), typeof value === 'string' ? value : JSON.stringify(value));
  return filtered;
}
