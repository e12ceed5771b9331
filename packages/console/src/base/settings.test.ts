import { expect, test } from 'vitest';
import { isTimeZone, parseSettings } from './settings.ts';

const DEFAULTS = { timeZone: '', weekStart: 'monday', theme: 'system', shortcuts: true, pinned: [], columns: {} };

test.each([
  [null, {}],
  ['', {}],
  ['null', {}],
  ['{"timeZone":"Mars/Olympus","weekStart":"friday","shortcuts":"no","theme":"pink"}', {}],
  ['{"pinned":"all"}', {}],
  ['{"pinned":["a",1,"b","c","d"]}', { pinned: ['b', 'c', 'd'] }],
  ['{"timeZone":"Asia/Tokyo"}', { timeZone: 'Asia/Tokyo' }],
  ['{"weekStart":"sunday","shortcuts":false}', { weekStart: 'sunday', shortcuts: false }],
  ['{"columns":{"users":["id"],"events":[1],"views":"id"}}', { columns: { users: ['id'] } }],
  ['{"columns":7}', {}],
  ['{"theme":"dark"}', { theme: 'dark' }],
])('%j is read as far as it is valid', (text, valid) => {
  expect(parseSettings(text)).toEqual({ ...DEFAULTS, ...valid });
});

test.each([
  ['Europe/Berlin', true],
  ['UTC', true],
  ['Berlin', false],
  ['+01:00', false],
  ['', false],
])('%j is a time zone: %s', (name, expected) => {
  expect(isTimeZone(name)).toBe(expected);
});
