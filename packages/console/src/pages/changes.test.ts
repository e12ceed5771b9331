import { expect, test } from 'vitest';
import { changeText, comparableDay, directionOf, paramsOfChange, usualOf, valuesOf } from './changes.ts';

test.each([
  [0, 5, 'gone', 'down'],
  [5, 0, 'new', 'up'],
  [250, 100, '× 2.5', 'up'],
  [199, 100, '+99%', 'up'],
  [35, 100, '−65%', 'down'],
  [100, 100, 'same', 'same'],
  [0, 0, 'same', 'same'],
  [null, 100, '', 'same'],
  [100, null, '', 'same'],
])('from %j after %j: %s', (value, before, text, direction) => {
  expect([changeText(value, before), directionOf(value, before)]).toEqual([text, direction]);
});

test('a value is drawn by its share of the events of its name, with gaps where there were none', () => {
  const change = { event: 'a', property: 'p', value: 1, count: 2, expected: { from: 0, to: 1 }, deviation: 4 };
  expect(valuesOf({ ...change, values: [1, 0, 2], of: [4, 0, 8] })).toEqual([0.25, null, 0.25]);
  expect(valuesOf({ ...change, values: [1, 0, 2], of: null })).toEqual([1, 0, 2]);
});

test('what is usual is the mean of the same weekday, in the weeks that there are', () => {
  const values = Array.from({ length: 29 }, (_, day) => (day % 7 === 0 ? day : 1_000));
  expect(usualOf(values, 4)).toBe((21 + 14 + 7 + 0) / 4);
  expect(usualOf(values, 2)).toBe((21 + 14) / 2);
  expect(usualOf([null, 1], 0)).toBe(null);
});

test('the chart of a change is filtered by its value, as a filter can name it', () => {
  const params = (property: string | null, value: unknown) =>
    paramsOfChange({ event: 'a&b', property, value }).toString();
  expect(params(null, null)).toBe('event=a%26b');
  expect(params('plan', 'business')).toBe('event=a%26b&properties.plan=business');
  expect(params('plan', false)).toBe('event=a%26b&properties.plan=false');
  expect(params('p[lt]', '')).toBe('event=a%26b&properties.p%5Blt%5D%5Beq%5D=');
  expect(params('a.b.c.d.e.f.g.h', 'x')).toBe('event=a%26b');
});

test('there is something to compare with two weeks after the first whole day', () => {
  const countsFrom = (first: number) => Array.from({ length: 30 }, (_, day) => (day < first ? 0 : 1));
  expect(comparableDay(countsFrom(14))).toBe(30);
  expect(comparableDay(countsFrom(13))).toBe(29);
  expect(comparableDay(countsFrom(29))).toBe(45);
});
