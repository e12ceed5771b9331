import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { cleaned } from './sql-error.ts';
import { mayNameViews, refuseTooLarge } from './statement-size.ts';

/** Ends what takes a thousand times as long as it should, in milliseconds. */
const TIMEOUT_MS = 20_000;

/** @throws {Error} when it takes too long: a search that goes back and forth would not end within hours */
function inTime<Result>(work: () => Result): Result {
  return runInNewContext('work()', { work }, { timeout: TIMEOUT_MS }) as Result;
}

/** Many times as long as a statement may be, so that what grows with the square of its length takes minutes. */
const repeated = (text: string) => text.repeat(Math.floor(500_000 / text.length));

test.each([
  ['WITH events AS (SELECT 1) SELECT * FROM events', true],
  ['WITH users\nAS\n(SELECT 1) SELECT 1', true],
  ['WITH "organizations" AS MATERIALIZED (SELECT 1) SELECT 1', true],
  ['WITH `events` AS NOT MATERIALIZED (SELECT 1) SELECT 1', true],
  ['WITH events(a, b) AS (SELECT 1, 2) SELECT 1', true],
  ['WITH events /* as it is */ AS (SELECT 1) SELECT 1', true],
  ['SELECT count() FROM events AS a CROSS JOIN events AS b CROSS JOIN events AS c', false],
  ['SELECT count() FROM events', false],
])('whether a WITH may give the name of a view to something else: %s', (sql, expected) => {
  expect(inTime(() => mayNameViews(sql))).toBe(expected);
});

test.each(['events AS ', 'events AS a', 'a ', 'a', ' ', '\n', 'events ', 'AS ', '} ', '"', 'events AS a b c d '])(
  'the time that it takes grows as the statement does: a statement full of %j',
  (text) => {
    expect(inTime(() => mayNameViews(`SELECT count() FROM events AS ${repeated(text)}`))).toBe(false);
    expect(inTime(() => mayNameViews(`SELECT count() FROM events ${repeated(text)}`))).toBe(false);
  },
);

test.each([' ', '\n', '(', '(A', '(A) ', '(version ', ': while ', ' in scope '])(
  'a message that is full of %j is cleaned in the time that reading it takes',
  (text) => {
    const message = `Cannot parse ${repeated(text)}! (CANNOT_PARSE_TEXT) (version 26.7.2)`;
    expect(inTime(() => cleaned(message, 'sluice_sql')).length).toBeLessThanOrEqual(1_001);
  },
);

test.each(['26.7.2', '26.7.2.1 (official build)'])('a message says neither its name nor the version: %s', (version) => {
  const message = `Syntax error: failed at position 8 (FORM) (SYNTAX_ERROR) (version ${version})\n`;
  expect(cleaned(message, 'sluice_sql')).toBe('Syntax error: failed at position 8 (FORM)');
});

test.each([' (alias ', ' (alias )', ' (alias ) (children 1', ' (children 1)', ' ', ')'])(
  'a literal that looks like the syntax tree around it, full of %j, is read in the time that its length takes',
  (text) => {
    const ast = ['SelectQuery (children 1)', ` ExpressionList (children 1)`, `  Literal '${repeated(text)}'`];
    expect(() => inTime(() => refuseTooLarge(ast, 'SELECT 1'))).not.toThrow();
  },
);
