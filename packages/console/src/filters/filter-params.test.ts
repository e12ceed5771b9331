import { expect, test } from 'vitest';
import { parseRecords } from '../base/base.ts';
import { eventFilters, filterParams, parseFilters, renamed, textOfFilters, withValue } from './filter-params.ts';

const NAMES = ['event', 'userId', 'groupId', 'startDate'];

test.each([
  'event=signed_up&userId=jane&properties.plan=pro&instanceId=i&limit=10',
  'properties.amount%5Bgte%5D=10&properties.a%5B0%5D%5Bin%5D=x%2Cy',
  'properties.a%5Blt%5D%5Beq%5D=x',
  'event%5Bprefix%5D=sign&userId%5Bexists%5D=false',
  'startDate=2026-01-01&orderByDirection=ASC&total=none',
  'event=a&event=b&nonsense=1&nonsense=2',
  'step2.properties.amount%5Blt%5D=10&step1.context.browser=Firefox&step1.segment=paying',
  'organization.properties.plan=pro&user.firstSeenAt%5Bgte%5D=2026-01-01&step2.user.properties.country%5Bin%5D=CH%2CDE',
])('the form keeps %s as it is', (query) => {
  expect(filterParams(parseFilters(new URLSearchParams(query), NAMES)).toString()).toBe(query);
});

test('a name in brackets that is no word belongs to the property', () => {
  const { conditions } = parseFilters(new URLSearchParams({ 'properties.a[0]': 'x', 'properties.b[lt]': '3' }), []);
  expect(conditions).toEqual([
    { name: 'properties.a[0]', operator: 'eq', value: 'x' },
    { name: 'properties.b', operator: 'lt', value: '3' },
  ]);
});

test('empty fields and the cursor of the old filters are left out', () => {
  const filters = parseFilters(new URLSearchParams({ event: ' ', cursor: 'c', groupId: ' acme ' }), NAMES);
  expect(filterParams(filters).toString()).toBe('groupId=acme');
});

test('other parameters and repeated ones are shown, not lost', () => {
  const { fields, conditions, other } = parseFilters(new URLSearchParams('event=a&event=b&x=1&anonymousId=p'), NAMES);
  expect([fields['event'], conditions, other]).toEqual([
    'a',
    [{ name: 'anonymousId', operator: 'eq', value: 'p' }],
    [
      ['event', 'b'],
      ['x', '1'],
    ],
  ]);
});

test('only filters of events are kept for a link to events', () => {
  const ofOwners =
    'organization.properties.plan=pro&user.lastSeenAt%5Blt%5D=2026-01-01&segment=paying&segment%5Bne%5D=idle';
  const query = 'event%5Bin%5D=a%2Cb&groupBy=type&properties.plan=pro&step1.properties.x=1&range=7d&returnEvent=c';
  expect(eventFilters(new URLSearchParams(`${query}&${ofOwners}`)).toString()).toBe(
    `event%5Bin%5D=a%2Cb&properties.plan=pro&${ofOwners}`,
  );
});

test.each([
  ['properties.plan', 'pro', 'properties.plan=pro'],
  ['properties.plan', '', 'properties.plan[eq]='],
  ['properties.plan', null, 'properties.plan[exists]=false'],
  ['properties.n', 9.5, 'properties.n=9.5'],
  ['properties.a[lt]', true, 'properties.a[lt][eq]=true'],
  ['properties.n', parseRecords('9007199254740993'), 'properties.n=9007199254740993'],
  // Integers that no double holds are one group, which has the nearest double's digits.
  ['properties.n', 2 ** 64, 'properties.n[gte]=18446744073709552000&properties.n[lte]=18446744073709552000'],
  ['properties.n', parseRecords('-1e21'), 'properties.n[gte]=-1e21&properties.n[lte]=-1e21'],
])('a filter that %s has the value %j replaces one on it', (name, value, expected) => {
  const params = new URLSearchParams([[name, 'old']]);
  expect(decodeURIComponent(withValue(params, name, value).toString())).toBe(expected);
});

test('a filter that becomes one on a time or a segment has an operator of these', () => {
  const condition = { name: 'properties.plan', operator: 'eq', value: 'x' };
  expect(renamed(condition, 'user.firstSeenAt').operator).toBe('gte');
  expect(renamed({ ...condition, operator: 'lt' }, 'organization.lastSeenAt').operator).toBe('lt');
  expect(renamed({ ...condition, operator: 'ne' }, 'user.properties.plan').operator).toBe('ne');
  expect(renamed({ ...condition, operator: 'contains' }, 'step1.segment').operator).toBe('eq');
  expect(renamed({ ...condition, operator: 'in' }, 'segment').operator).toBe('in');
});

test('filters are read as a person says them', () => {
  const query =
    'event=paid&organization.properties.plan[in]=pro,team&user.firstSeenAt[gte]=2026-01-01&properties.x[exists]=false&segment[ne]=idle&segment.y=1';
  expect(textOfFilters(new URLSearchParams(query))).toBe(
    'Event is paid, Organization: plan is one of pro,team, User: first seen since 2026-01-01, x does not exist, Segment is not idle, segment.y=1',
  );
});
