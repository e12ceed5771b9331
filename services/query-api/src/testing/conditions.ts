import fc from '@sluice/shared/testing/fast-check';
import { COMPARISONS, type Comparison, type Condition } from '../records/filters/operators.ts';

/** Returns the value of a condition as a request writes it. */
export function textOf({ operator, value }: Condition, typed: boolean): string {
  if (operator === 'in') return value.map((item) => item.replaceAll(/[\\,]/g, '\\$&')).join(',');
  if (!COMPARISONS.includes(operator as Comparison) || !typed || typeof value === 'boolean') return String(value);
  return typeof value === 'number' || value.startsWith('"') || value === '' || !Number.isNaN(Number(value))
    ? JSON.stringify(value)
    : value;
}

/** Returns conditions on the value itself, on parts of it, and on another one. */
export function conditionsFor(value: unknown, other: unknown): fc.Arbitrary<Condition> {
  const text = asText(value);
  const substring = fc.tuple(fc.nat(8), fc.integer({ min: 1, max: 4 })).map(([from, length]) => {
    const points = [...asText(value).toWellFormed()];
    const start = points.length === 0 ? 0 : from % points.length;
    return points.slice(start, start + length).join('') || 'x';
  });
  return fc.oneof(
    fc.constantFrom<Condition>(
      { operator: 'eq', value: text },
      { operator: 'ne', value: text },
      { operator: 'in', value: [text] },
      { operator: 'in', value: [asText(other), '', text, ','] },
      { operator: 'exists', value: true },
      { operator: 'exists', value: false },
    ),
    substring.map((value): Condition => ({ operator: 'contains', value })),
    fc.nat(4).map((length): Condition => {
      const prefix = [...text.toWellFormed()].slice(0, length + 1).join('');
      return { operator: 'prefix', value: prefix || 'x' };
    }),
    fc
      .tuple(fc.constantFrom(...COMPARISONS), fc.constantFrom(value, other))
      .map(([operator, one]): Condition => ({ operator, value: typeof one === 'number' ? one : wellFormedText(one) })),
  );
}

/** Returns a property as text: a string as it is, anything else as JSON. */
export function asText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function wellFormedText(value: unknown): string {
  return asText(value).toWellFormed();
}
