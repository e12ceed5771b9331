import { DEAR_STATEMENTS } from '@sluice/query-api/testing/dear-sql';
import { HOSTILE_STATEMENTS } from '@sluice/query-api/testing/hostile-sql';
import { bodyDoor, textOfLength } from './body-door.ts';
import type { Doors, Expectation } from './door.ts';
import type { LimitId } from './limits.ts';
import { pick, type Random } from './texts.ts';

const HOSTILE: readonly string[] = Object.values(HOSTILE_STATEMENTS).flatMap((statements) =>
  statements.map(([, sql]) => sql),
);

const ORDINARY = 'SELECT event, count() AS n FROM events GROUP BY event ORDER BY n DESC';

/** Reads what the workspace has that is expensive to read, sort and print. */
export const EXPENSIVE_STATEMENTS = [
  'SELECT properties FROM events ORDER BY properties LIMIT 1000',
  'SELECT arrayJoin(JSONExtractKeys(properties)) AS name, count() FROM events GROUP BY name ORDER BY name',
  'SELECT * FROM events ORDER BY event, timestamp LIMIT 10000',
  'SELECT count() FROM events AS a CROSS JOIN events AS b CROSS JOIN events AS c',
] as const;

/** What a statement may come to. That none reads or does what it may not is for hostile-sql.slow.test.ts. */
export const RUN: Expectation = {
  statuses: [200, 400],
  named: [],
  refusals: ['invalid_sql', 'invalid_request', 'query_too_expensive', 'too_long'],
};

/** What a reader of SQL stops at. */
const FRAGMENTS = [
  ...[
    'events',
    'users AS',
    'AS',
    'a',
    'a1 ',
    ' ',
    '\n',
    '(',
    ')',
    '}',
    '{',
    '[',
    ',',
    '.',
    ';',
    "'",
    "''",
    '"',
    '`',
    '\\',
  ],
  ...[
    '$',
    '$a$',
    '--',
    '/*',
    '*/',
    '//',
    '#',
    'cube',
    'SELECT ',
    'WITH ',
    '1',
    '.1',
    '1e',
    '::',
    '->',
    'default.',
    '\u2028',
  ],
] as const;

/** What is dear to read as a text: two fragments over and over, in the place of a name, a table, a value or a condition. */
function unreadableStatement(random: Random): string {
  const fragments = [pick(random, FRAGMENTS), random() < 0.5 ? '' : pick(random, FRAGMENTS)].join('');
  const text = fragments.repeat(Math.floor(10 ** (1 + 4 * random()) / fragments.length));
  return pick(random, [
    `SELECT count() FROM events AS ${text}`,
    `SELECT count() FROM events ${text}`,
    `WITH ${text} SELECT 1`,
    `SELECT ${text}`,
    `SELECT toInt64('${text}')`,
    `SELECT 1 WHERE ${text}`,
  ]);
}

/**
 * A statement that should be refused, one that is dear by its construction, one that is dear by what is stored, or one that is
 * dear to read.
 */
export function hostileStatement(random: Random): string {
  const share = random();
  if (share < 0.4) return unreadableStatement(random);
  return pick(random, share < 0.6 ? HOSTILE : share < 0.8 ? DEAR_STATEMENTS : EXPENSIVE_STATEMENTS);
}

const PARAMETER_LIMITS: readonly LimitId[] = ['statementParams', 'statementParam'];

/** SQL of clients. */
export const STATEMENT_DOORS: Doors = {
  'POST /queries': bodyDoor({
    request: { service: 'query-api', method: 'POST', path: '/queries' },
    limits: ['statement', ...PARAMETER_LIMITS],
    bodyLimit: 'statementBody',
    body(values, random) {
      const bytes = values.get('statement');
      const hasParams = PARAMETER_LIMITS.some((limit) => values.has(limit));
      const sql = values.size === 0 ? hostileStatement(random) : ORDINARY;
      const count = hasParams ? (values.get('statementParams') ?? 1) : 0;
      const characters = values.get('statementParam') ?? 3;
      return {
        sql: bytes === undefined ? sql : sql.padEnd(bytes, ' '),
        ...(hasParams && {
          params: Object.fromEntries(
            Array.from({ length: count }, (_, index) => [
              `p${index}`,
              textOfLength(random, index === 0 ? characters : 3),
            ]),
          ),
        }),
        format: pick(random, ['json', 'ndjson', 'csv', 'parquet', 'arrow']),
      };
    },
    answered: RUN,
  }),
};
