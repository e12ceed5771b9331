import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  COMPARED_CHARACTERS_MAX,
  CUBE_KEYS_MAX,
  GROUP_PARAMETER_MAX,
  JOINS_MAX,
  SELECTS_MAX,
  WINDOWS_MAX,
} from '../http/limits.ts';
import { type SqlService, startSql } from '../testing/sql-service.ts';

let service: SqlService;

beforeAll(async () => {
  service = await startSql();
});
afterAll(() => service.stop());

async function outcomeOf(sql: string): Promise<string> {
  const { status, text } = await service.post({ sql, format: 'ndjson' });
  if (status === 200) return 'ok';
  const { errors = [], code } = JSON.parse(text);
  return errors[0]?.code === 'too_large' ? errors[0].message : `${code} ${errors[0]?.message}`;
}

const list = (count: number, item: (index: number) => string, separator = ', ') =>
  Array.from({ length: count }, (_, index) => item(index)).join(separator);

const selects = (count: number) => list(count, () => 'SELECT 1', ' UNION ALL ');
const joins = (count: number) =>
  `SELECT count() FROM numbers(1) AS t ${list(count, (i) => `JOIN numbers(1) AS t${i} ON t.number = t${i}.number`, ' ')}`;
const windows = (count: number) =>
  `SELECT ${list(count, (i) => `sum(number) OVER (ORDER BY number + ${i})`)} FROM numbers(1)`;
const cube = (count: number) => `SELECT count() FROM numbers(0) GROUP BY CUBE(${list(count, (i) => `number + ${i}`)})`;
const needles = (characters: number) => `SELECT hasAll(['a'], ['${'a'.repeat(characters - "Array_['']".length)}'])`;
const topK = (parameter: number) => `SELECT topK(${parameter})(number) FROM numbers(1)`;
const topKInText = (parameter: number) => `SELECT arrayReduce('topK(${parameter})', [1])`;

test.each([
  ['SELECTs', selects, SELECTS_MAX],
  ['joins', joins, JOINS_MAX],
  ['windows', windows, WINDOWS_MAX],
  ['keys of CUBE', cube, CUBE_KEYS_MAX],
  ['a constant list', needles, COMPARED_CHARACTERS_MAX],
  ['a parameter', topK, GROUP_PARAMETER_MAX],
  ['a parameter in a text', topKInText, GROUP_PARAMETER_MAX],
])('%s at the limit run, and one more names the limit', async (_, statement, max) => {
  expect(await outcomeOf(statement(max))).toBe('ok');
  expect(await outcomeOf(statement(max + 1))).toContain(String(max));
});

test.each([
  ['a list that is computed', 'SELECT hasAll([1], range(10))'],
  ['a list that is computed, by a name', 'SELECT arrayMap(hasAll, [[1]], [range(10)])'],
  ['an alias that may look like another', 'SELECT abs(1) AS `b) (alias c`'],
  ['an alias that may look like children', 'SELECT number AS `b) (children 1` FROM numbers(1)'],
  [
    'sub-selects by their names',
    `WITH a0 AS (SELECT 1 AS n), ${list(20, (i) => `a${i + 1} AS (SELECT n FROM a${i} AS x JOIN a${i} AS y USING n)`)} SELECT n FROM a20`,
  ],
  [
    'sub-selects with the names of views',
    `WITH events AS (SELECT 1 AS n), users AS (SELECT x0.n AS n FROM ${list(20, (i) => `events AS x${i}`)}), organizations AS (SELECT x0.n AS n FROM ${list(20, (i) => `users AS x${i}`)}) SELECT x0.n FROM ${list(10, (i) => `organizations AS x${i}`)}`,
  ],
  [
    'values by their names',
    `WITH number AS a0, ${list(11, (i) => `a${i} + a${i} AS a${i + 1}`)} SELECT a11 FROM numbers(1) WHERE a11 = a11 AND a11 = a10 AND a11 = a11`,
  ],
  ['all columns', Array.from({ length: 14 }).reduce<string>((s) => `SELECT *, * FROM (${s})`, 'SELECT 1')],
])('%s: refused before it is planned', async (_, sql) => {
  expect(await outcomeOf(sql)).toMatch(/parts; at most|not a constant|a constant list|looks like/);
});

test('statements of analysts are not too large', async () => {
  const statements = [
    'SELECT toDate(timestamp) AS timestamp, count() AS events FROM events GROUP BY timestamp ORDER BY timestamp',
    'SELECT user_id AS organization_id, organization_id AS other FROM events',
    "SELECT arrayMap(x -> x + 1, [1, 2]) AS x, arraySum(y -> y, x) AS y, hasAll(['a'], ['b', 'c']), hasAny([1], range(3))",
    `WITH firsts AS (SELECT user_id, min(timestamp) AS first FROM events GROUP BY user_id),
      weeks AS (SELECT user_id, toStartOfWeek(timestamp) AS week FROM events GROUP BY ALL),
      cohorts AS (SELECT toStartOfWeek(f.first) AS cohort, w.week AS week, uniqExact(w.user_id) AS users
        FROM firsts AS f JOIN weeks AS w ON w.user_id = f.user_id GROUP BY ALL),
      sizes AS (SELECT cohort, max(users) AS size FROM cohorts GROUP BY cohort)
      SELECT c.cohort, c.week, c.users / s.size AS share, sum(c.users) OVER (PARTITION BY c.cohort ORDER BY c.week) AS total
      FROM cohorts AS c JOIN sizes AS s USING cohort LEFT JOIN (SELECT count() AS n FROM users) AS u ON 1 = 1`,
    `SELECT ${list(200, (i) => `JSONExtractString(properties, 'p${i}') AS p${i}`)} FROM events WHERE p1 = p2`,
  ];
  for (const sql of statements) expect([await outcomeOf(sql), sql]).toEqual(['ok', sql]);
});
