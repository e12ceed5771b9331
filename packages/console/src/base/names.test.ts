import { expect, test } from 'vitest';
import { joinList, labelOfMeasure, labelOfName, nameOf, splitList } from './names.ts';

test.each([
  ['groupId', 'Organization'],
  ['properties.plan', 'plan'],
  ['properties.address.city', 'address.city'],
  ['context.browser', 'context.browser'],
  ['properties.User', 'properties.User'],
  ['properties.userId', 'properties.userId'],
  ['properties.context.x', 'properties.context.x'],
  ['properties. x', 'properties. x'],
  ['properties.', 'properties.'],
  ['properties.🙂', '🙂'],
  ['organization.properties.plan', 'Organization: plan'],
  ['user.properties.address.city', 'User: address.city'],
  ['user.properties.Organization: plan', 'User: Organization: plan'],
  ['organization.properties.first seen', 'organization.properties.first seen'],
  ['organization.properties. x', 'Organization:  x'],
  ['user.properties.', 'user.properties.'],
  ['user.properties.firstSeenAt', 'User: firstSeenAt'],
  ['properties.Organization: plan', 'properties.Organization: plan'],
  ['properties.user.properties.x', 'properties.user.properties.x'],
  ['properties.user.plan', 'user.plan'],
  ['organization.firstSeenAt', 'Organization: first seen'],
  ['user.lastSeenAt', 'User: last seen'],
  ['segment', 'Segment'],
  ['properties.segment', 'properties.segment'],
  ['', ''],
])('%s reads "%s", which means it again', (name, label) => {
  expect(labelOfName(name)).toBe(label);
  expect(nameOf(label)).toBe(name);
});

test('a list keeps its items, also with commas and backslashes', () => {
  const items = ['plan', 'price, net', String.raw`a\b`, String.raw`\,`, '🙂'];
  expect(splitList(joinList(items))).toEqual(items);
  expect(joinList(items)).toBe(String.raw`plan,price\, net,a\\b,\\\,,🙂`);
  expect(splitList('')).toEqual([]);
});

test.each([
  ['count', 'Events'],
  ['users', 'Distinct users'],
  ['sum:properties.amount', 'Sum of amount'],
  ['p50:properties.a:b', 'Median of a:b'],
  ['nonsense', 'nonsense'],
])('the measure %s reads "%s"', (measure, label) => {
  expect(labelOfMeasure(measure)).toBe(label);
});
