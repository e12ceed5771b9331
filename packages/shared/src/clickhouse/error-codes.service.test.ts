import { expect, inject, onTestFinished, test } from 'vitest';
import { createClickHouse } from './client.ts';
import { ERROR_NAMES, ErrorCodes } from './error-codes.ts';

test('ClickHouse has these errors, by these numbers', async () => {
  const client = createClickHouse(
    {
      ...{ CLICKHOUSE_URL: inject('clickhouseUrl'), CLICKHOUSE_DATABASE: 'default' },
      ...{ CLICKHOUSE_USER: 'default', CLICKHOUSE_PASSWORD: '' },
    },
    { application: 'test', requestTimeoutMs: 240_000, connectionsMax: 1 },
  );
  onTestFinished(() => client.close());
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
