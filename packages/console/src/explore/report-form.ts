import { isTimeName, joinList, labelOfName, parseMeasure, splitList } from '../base/base.ts';
import { type Filters, isApplied, stepOf } from '../filters/filters.ts';
import type { Report } from './reports.ts';

export const STEPS_MIN = 2;
export const STEPS_MAX = 8;

/** Returns the steps of a form, at least two, which may be empty. */
export function stepsOf({ fields }: Filters): string[] {
  const steps = splitList(fields['steps'] ?? '');
  return [...steps, ...Array.from({ length: Math.max(0, STEPS_MIN - steps.length) }, () => '')];
}

/** Returns the form with other steps. */
export function withSteps(filters: Filters, steps: readonly string[]): Filters {
  // An empty list and a list of one empty name read the same.
  const list = steps.every((step) => step === '') && steps.length <= STEPS_MIN ? '' : joinList(steps);
  return { ...filters, fields: { ...filters.fields, steps: list } };
}

/** Returns the form with a step at another place; its filters stay with it. */
export function moveStep(filters: Filters, from: number, to: number): Filters {
  const order = [...stepsOf(filters).keys()];
  order.splice(to, 0, ...order.splice(from, 1));
  return reorder(filters, order);
}

/** Returns the form without a step and its filters. */
export function removeStep(filters: Filters, removed: number): Filters {
  return reorder(
    filters,
    [...stepsOf(filters).keys()].filter((index) => index !== removed),
  );
}

/** @param order which step was where each one is now */
function reorder(filters: Filters, order: readonly number[]): Filters {
  const steps = stepsOf(filters);
  const conditions = filters.conditions.flatMap((condition) => {
    const { step, name } = stepOf(condition.name);
    // query-api says that there is no such step.
    if (step === undefined || step > steps.length) return [condition];
    const at = order.indexOf(step - 1);
    return at === -1 ? [] : [{ ...condition, name: `step${at + 1}.${name}` }];
  });
  return withSteps(
    { ...filters, conditions },
    order.map((index) => steps[index] ?? ''),
  );
}

/** No event is older. */
const FIRST_DAY = '1970-01-01';

/**
 * Returns what a report needs and its form does not have yet, and what is wrong in it, as sentences.
 *
 * @param params of the address: what they have was meant so
 */
export function missingOf(report: Report, filters: Filters, params: URLSearchParams): string[] {
  const fieldOf = (name: string) => filters.fields[name] ?? '';
  const missing: string[] = [];
  if (report === 'series' && parseMeasure(fieldOf('measure')).property === '')
    missing.push('Choose a number property.');
  if (report === 'values' && fieldOf('property') === '') missing.push('Choose a property.');
  if (report === 'funnel') {
    const empty = stepsOf(filters).flatMap((step, index) => (step === '' ? [index + 1] : []));
    if (empty.length > 0) missing.push(`Choose an event for step ${empty.join(' and step ')}.`);
  }
  return [
    ...missing,
    ...wrongDaysOf(fieldOf('startDate'), fieldOf('endDate')),
    ...wrongNumbersOf(filters),
    ...filters.conditions
      .filter((condition) => !isApplied(condition, params))
      .flatMap(({ name, value }) => {
        const own = stepOf(name).name;
        if (own === '') return ['Choose a property to filter by.'];
        if (value !== '') return [];
        return [`Choose ${isTimeName(own) ? 'a day' : 'a value'} of ${labelOfName(own)}.`];
      }),
  ];
}

function wrongDaysOf(first: string, last: string): string[] {
  const isDay = (text: string) => /^\d{4}-\d\d-\d\d$/.test(text);
  if (first === '' && last !== '') return ['Choose a first day.'];
  if (isDay(first) && first < FIRST_DAY) return ['The first day is too early.'];
  return isDay(first) && isDay(last) && first > last ? ['The first day is after the last one.'] : [];
}

/** The fields of numbers, by their parameters. */
const NUMBERS: Readonly<Record<string, string>> = { groups: 'Groups', periods: 'Intervals' };

function wrongNumbersOf({ fields }: Filters): string[] {
  const numbers = Object.entries(NUMBERS).filter(([name]) => !/^(?:[1-9]\d*)?$/.test(fields[name]?.trim() ?? ''));
  const wrong = numbers.map(([, label]) => `${label} is a number from 1 on.`);
  return /^(?:[1-9]\d*[smhd])?$/.test(fields['within']?.trim() ?? '')
    ? wrong
    : [...wrong, 'Within is a number with s, m, h or d: 7d.'];
}
