import { expect, test } from 'vitest';
import { outcomeOf, queryProblem } from './query-error.ts';
import { ClickHouseException, ConnectionFailure, exceptionIn } from './read-failures.ts';

test.each([
  // A budget of the query.
  [158, 'too_expensive'],
  [159, 'too_expensive'],
  [307, 'too_expensive'],
  // The server has too much to do.
  [173, 'overloaded'],
  [201, 'overloaded'],
  [202, 'overloaded'],
  // The server cannot serve this account, or not now.
  [60, 'unavailable'],
  [164, 'unavailable'],
  [279, 'unavailable'],
  [394, 'unavailable'],
  [497, 'unavailable'],
  [499, 'unavailable'],
  [516, 'unavailable'],
  [999, 'unavailable'],
  // The statement is wrong.
  [47, 'failed'],
  [62, 'failed'],
])("ClickHouse's error %i is the outcome %s", (code, outcome) => {
  expect(outcomeOf(new ClickHouseException(code, 'message'))).toBe(outcome);
});

test('memory is a budget of the query, unless that of the whole server is used up', () => {
  expect(outcomeOf(new ClickHouseException(241, 'Query memory limit exceeded'))).toBe('too_expensive');
  expect(outcomeOf(new ClickHouseException(241, '(total) memory limit exceeded'))).toBe('overloaded');
});

test('a connection that fails or times out makes the store unavailable; any other error is one of this service', () => {
  expect(outcomeOf(new ConnectionFailure('reset'))).toBe('unavailable');
  expect(outcomeOf(new DOMException('too late', 'TimeoutError'))).toBe('unavailable');
  expect(outcomeOf(new TypeError('x is undefined'))).toBe('failed');
  expect(queryProblem('failed', undefined)).toMatchObject({ status: 500, code: 'internal' });
});

test("ClickHouse's exceptions are read with their numbers, and other texts are none", () => {
  const text =
    '\r\n__exception__\r\nabcdefghijklmnop\r\nCode: 395. DB::Exception: Value passed to throwIf is not zero: while executing\nthrowIf(x). (FUNCTION_THROW_IF_VALUE_IS_NON_ZERO) (version 26.7.2.1)\n1 abcdefghijklmnop\r\n__exception__\r\n';
  expect(exceptionIn(text)).toMatchObject({ code: 395, message: expect.stringContaining('throwIf(x)') });
  expect(exceptionIn('<html>502 Bad Gateway</html>')).toBeUndefined();
});
