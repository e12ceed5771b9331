import { expect, test } from 'vitest';
import { filterParams, parseFilters } from '../filters/filters.ts';
import { missingOf, moveStep, removeStep, stepsOf, withSteps } from './report-form.ts';

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

const NAMES = ['measure', 'property', 'steps', 'startDate', 'endDate', 'groups', 'periods', 'within'];

test.each([
  ['series', 'measure=sum:', ['Choose a number property.']],
  ['series', 'measure=sum:properties.x&groups=10', []],
  ['values', '', ['Choose a property.']],
  ['funnel', 'steps=a', ['Choose an event for step 2.']],
  ['funnel', 'steps=,b,', ['Choose an event for step 1 and step 3.']],
  ['funnel', 'steps=a,b&within=7', ['Within is a number with s, m, h or d: 7d.']],
  ['retention', 'periods=0', ['Intervals is a number from 1 on.']],
  ['series', 'endDate=2026-01-01', ['Choose a first day.']],
  ['series', 'startDate=2026-01-02&endDate=2026-01-01', ['The first day is after the last one.']],
  ['series', 'startDate=0202-01-02&endDate=2026-01-01', ['The first day is too early.']],
] as const)('a form of %s with %s is complete, or says what is missing', (report, query, missing) => {
  const params = new URLSearchParams(query);
  expect(missingOf(report, parseFilters(params, NAMES), params)).toEqual(missing);
});

test('a filter needs a name and a value, unless the address means an empty one', () => {
  const none = new URLSearchParams();
  const conditions = [
    { name: '', operator: 'eq', value: 'x' },
    { name: 'step1.properties.plan', operator: 'eq', value: '' },
    { name: 'user.firstSeenAt', operator: 'gte', value: '' },
  ];
  expect(missingOf('series', { ...parseFilters(none, NAMES), conditions }, none)).toEqual([
    ...['Choose a property to filter by.', 'Choose a value of plan.', 'Choose a day of User: first seen.'],
  ]);
  const meant = new URLSearchParams({ 'properties.plan[eq]': '' });
  expect(missingOf('series', parseFilters(meant, NAMES), meant)).toEqual([]);
});
