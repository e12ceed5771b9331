import { expect, test } from 'vitest';
import { withOurNames, withTheirNames } from './statement-names.ts';

test.each([
  ['SELECT userId, groupId, instanceId FROM events', 'SELECT user_id, organization_id, instance_id FROM events'],
  ['SELECT e.group_id FROM events AS e', 'SELECT e.organization_id FROM events AS e'],
  ['SELECT max(parsed_at), anonymousId', 'SELECT max(received_at), anonymous_id'],
  ['SELECT "userId", `groupId`', 'SELECT "user_id", `organization_id`'],
  ['SELECT myuserId, userIds, user_id', 'SELECT myuserId, userIds, user_id'],
  ['SELECT 1 FROM "default"."events"', 'SELECT 1 FROM "events"'],
  ['SELECT e.userId FROM default.events AS e', 'SELECT e.user_id FROM events AS e'],
  ['SELECT 1 FROM `default` . `events`', 'SELECT 1 FROM `events`'],
  ['SELECT default.events.userId FROM default.events', 'SELECT events.user_id FROM events'],
  ['SELECT 1 FROM(default.events)', 'SELECT 1 FROM(events)'],
  ['SELECT 1 FROM default.events_old, my.default.events', 'SELECT 1 FROM default.events_old, my.default.events'],
  ['SELECT 1 FROM default.users', 'SELECT 1 FROM default.users'],
  [
    "SELECT 'default.events', $$default.events$$, -- default.events",
    "SELECT 'default.events', $$default.events$$, -- default.events",
  ],
  ['SELECT constructor, toString', 'SELECT constructor, toString'],
])('%s: names of columns become those of the views', (sql, expected) => {
  expect(withOurNames(sql)).toBe(expected);
});

test.each([
  "SELECT 'userId' = 'it''s groupId' OR 'a\\'userId'",
  'SELECT 1 -- userId\n',
  'SELECT /* userId */ 1',
  'SELECT $tag$ userId $$ $tag$',
  "SELECT 'userId",
  "SELECT 'userId\\",
])('%s: strings and comments stay as they are', (sql) => {
  expect(withOurNames(sql)).toBe(sql);
});

test('names after a string, a comment and a heredoc are changed', () => {
  expect(withOurNames("SELECT 'a\\\\', userId /* ' */, groupId -- '\n, $$'$$, userId")).toBe(
    "SELECT 'a\\\\', user_id /* ' */, organization_id -- '\n, $$'$$, user_id",
  );
});

test('a row has names in camel case, and its JSON in place of texts', () => {
  const row = new Map([
    ['user_id', '"a"'],
    ['organization_id', '"b"'],
    ['received_at', '"c"'],
    ['first_name', '1'],
    ['userId', '"last"'],
    ['10', '12345678901234567890'],
    ['properties', '"{\\"a_b\\":[12345678901234567890]}"'],
    ['traits', '""'],
    ['context', '7'],
  ]);
  expect(withTheirNames(row)).toBe(
    '{"userId":"last","groupId":"b","parsedAt":"c","firstName":1,"10":12345678901234567890,' +
      '"properties":{"a_b":[12345678901234567890]},"traits":"","context":7}',
  );
});
