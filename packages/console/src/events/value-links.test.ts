import { expect, test } from 'vitest';
import { parseRecords } from '../base/base.ts';
import { chartHref, type EventDocument, filterHref } from './value-links.ts';

const place = (names: readonly string[], document: EventDocument = 'properties') => ({ document, names });
const NONE = new URLSearchParams();

function parametersOf(href: string | undefined): string | undefined {
  return href && decodeURIComponent(href.replaceAll('+', ' '));
}

test.each([
  [['plan'], 'pro', 'properties.plan=pro'],
  [['a', 'b'], 3, 'properties.a.b=3'],
  [['a'], null, 'properties.a=null'],
  [['a'], '', 'properties.a[eq]='],
  [['a[lt]'], true, 'properties.a[lt][eq]=true'],
  [['a'], [], 'properties.a=[]'],
  [['a&b=c'], '😀 &=#', 'properties.a&b=c=😀 &=#'],
])('a filter on %j that is %j', (names, value, expected) => {
  expect(parametersOf(filterHref(NONE, place(names), value))).toBe(`#/events?${expected}`);
});

test('a number that no double holds keeps its digits', () => {
  const { n } = parseRecords('{"n":9007199254740993}') as Record<string, unknown>;
  expect(filterHref(NONE, place(['n']), n)).toMatch(/=900719925474099[23]$/);
});

test('a filter is added to those of the list, without its place in it', () => {
  const filters = new URLSearchParams('userId=jane&properties.plan=free&cursor=x&show=y&limit=5');
  const href = filterHref(filters, place(['plan']), 'pro');
  expect(parametersOf(href)).toBe('#/events?userId=jane&properties.plan=pro');
});

test('what no filter can say has no link', () => {
  expect(filterHref(NONE, place([]), 'x')).toBeUndefined();
  expect(filterHref(NONE, place(['']), 'x')).toBeUndefined();
  expect(filterHref(NONE, place(['a.b.c', 'd', 'e', 'f', 'g']), 'x')).toBeDefined();
  expect(filterHref(NONE, place(['a.b.c', 'd', 'e', 'f', 'g', 'h']), 'x')).toBeUndefined();
  expect(filterHref(NONE, place(['a']), 'x'.repeat(2_001))).toBeUndefined();
});

test('a number is charted by its average, other values by how often they occur', () => {
  expect(parametersOf(chartHref('paid', place(['amount']), 3))).toBe(
    '#/explore?report=series&event=paid&measure=avg:properties.amount',
  );
  expect(parametersOf(chartHref('paid', place(['a,b']), 'x'))).toBe(
    '#/explore?report=series&event=paid&groupBy=properties.a\\,b',
  );
  expect(chartHref('paid', place(['browser'], 'context'), 'x')).toBeUndefined();
});
