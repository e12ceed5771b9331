import { joinList, splitList } from '../base/base.ts';
import { type Filters, stepOf } from '../filters/filters.ts';

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
