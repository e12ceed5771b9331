import { type Filters, stepOf } from '../filters.ts';
import { joinList, splitList } from '../names.ts';

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
  const steps = stepsOf(filters);
  const order = steps.map((_, index) => index);
  order.splice(to, 0, ...order.splice(from, 1));
  return renumber(
    withSteps(
      filters,
      order.map((index) => steps[index] ?? ''),
    ),
    order,
  );
}

/** Returns the form without a step and its filters. */
export function removeStep(filters: Filters, removed: number): Filters {
  const steps = stepsOf(filters);
  const order = steps.flatMap((_, index) => (index === removed ? [] : [index]));
  return renumber(
    withSteps(
      filters,
      order.map((index) => steps[index] ?? ''),
    ),
    order,
  );
}

/** @param order which step was where each one is now */
function renumber(filters: Filters, order: readonly number[]): Filters {
  const conditions = filters.conditions.flatMap((condition) => {
    const { step, name } = stepOf(condition.name);
    if (step === undefined || step > Math.max(...order) + 1) return [condition];
    const at = order.indexOf(step - 1);
    return at === -1 ? [] : [{ ...condition, name: `step${at + 1}.${name}` }];
  });
  return { ...filters, conditions };
}
