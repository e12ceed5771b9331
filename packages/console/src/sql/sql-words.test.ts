import { expect, test } from 'vitest';
import { completingAt, propertySql } from './sql-words.ts';

const labels = (sql: string, properties: readonly string[] = []) =>
  completingAt(sql, sql.length, properties).completions.map(({ label }) => label);

test('a word becomes a name that begins with it, of columns first and of properties last', () => {
  expect(labels('SELECT us', ['used'])).toEqual(['user_id', 'users', 'USING', 'used']);
  expect(completingAt('SELECT tim FROM events', 10, []).completions).toEqual([
    { label: 'timestamp', text: 'timestamp' },
  ]);
  expect(completingAt('SELECT tim FROM events', 10, []).start).toBe(7);
});

test('nothing is completed in a text, in the middle of a word, of one letter, or of a whole word', () => {
  expect(labels("WHERE event = 'us")).toEqual([]);
  expect(labels("WHERE event = 'it''s' AND us")).not.toEqual([]);
  expect(completingAt('SELECT timestamp', 9, []).completions).toEqual([]);
  expect(labels('u')).toEqual([]);
  expect(labels('select')).toEqual([]);
  expect(labels('SELECT count(*) FROM users WHERE user_id')).toEqual([]);
});

test('the path of a property leads into objects, and each name is a text of the statement, whatever it has', () => {
  expect(propertySql("it's \\")).toBe("JSONExtractString(properties, 'it\\'s \\\\')");
  expect(propertySql('address.city')).toBe("JSONExtractString(properties, 'address', 'city')");
});
