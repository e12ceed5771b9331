import { expect, test } from 'vitest';
import { ERROR_NAMES, ErrorCodes } from './error-codes.ts';
import { takeDatabase } from './testing/test-database.ts';

test('ClickHouse has these errors, by these numbers', async () => {
  const { client } = await takeDatabase();
  const result = await client.query({
    query: 'SELECT number AS code, errorCodeToName(number) AS name FROM numbers(2000)',
    format: 'JSONEachRow',
  });
  const errors = await result.json<{ code: string; name: string }>();
  for (const name of ERROR_NAMES) {
    const known = new ErrorCodes(name);
    expect(errors.filter(({ code }) => known.has(code)).map((error) => error.name)).toEqual([name]);
  }
});
