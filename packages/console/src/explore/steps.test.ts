import { expect, test } from 'vitest';
import { filterParams, parseFilters } from '../filters/filters.ts';
import { moveStep, removeStep, stepsOf, withSteps } from './steps.ts';

const formOf = (query: string) => parseFilters(new URLSearchParams(query), ['steps']);
const queryOf = (filters: ReturnType<typeof formOf>) => decodeURIComponent(filterParams(filters).toString());

const THREE = 'steps=a,b\\,c,d&properties.plan=pro&step1.properties.x=1&step3.properties.y[lt]=3';

test('a funnel begins with two empty steps, which are in no address', () => {
  expect(stepsOf(formOf(''))).toEqual(['', '']);
  expect(queryOf(withSteps(formOf(''), ['', '']))).toBe('');
  expect(stepsOf(formOf('steps=a\\,b'))).toEqual(['a,b', '']);
});

test('a step is moved with its filters', () => {
  expect(queryOf(moveStep(formOf(THREE), 0, 2))).toBe(
    'steps=b\\,c,d,a&properties.plan=pro&step3.properties.x=1&step2.properties.y[lt]=3',
  );
});

test('a step is removed with its filters', () => {
  expect(queryOf(removeStep(formOf(THREE), 0))).toBe('steps=b\\,c,d&properties.plan=pro&step2.properties.y[lt]=3');
  expect(queryOf(removeStep(formOf(THREE), 1))).toBe(
    'steps=a,d&properties.plan=pro&step1.properties.x=1&step2.properties.y[lt]=3',
  );
  expect(queryOf(removeStep(formOf(THREE), 2))).toBe('steps=a,b\\,c&properties.plan=pro&step1.properties.x=1');
});
