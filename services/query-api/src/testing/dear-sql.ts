/** A kind of statement that is dear by construction, in sizes from one that may run to one that would take hours. */
interface DearKind {
  readonly sizes: readonly number[];
  statement(size: number): string;
}

const list = (size: number, item: (index: number) => string, separator = ', ') =>
  Array.from({ length: size }, (_, index) => item(index)).join(separator);

function nested(size: number, inner: string, around: (inner: string, index: number) => string): string {
  return Array.from({ length: size }, (_, index) => index).reduce(around, inner);
}

/** What is computed: the functions that multiply the sizes of their arguments, and others with large ones. */
const COMPUTED: Readonly<Record<string, DearKind>> = {
  'JSON paths': { sizes: [1e6, 4e9], statement: (n) => `SELECT JSON_QUERY('[[1]]', '$[0 to ${n}]')` },
  'JSON values': { sizes: [4e9], statement: (n) => `SELECT JSON_VALUE('[[1]]', '$[0 to ${n}].a')` },
  'edit distance': {
    sizes: [1e4, 6e4],
    statement: (n) => `SELECT editDistance(repeat('ab', ${n / 2}), repeat('ba', ${n / 2}))`,
  },
  'other distances of texts': {
    sizes: [6e4],
    statement: (n) => `SELECT damerauLevenshteinDistance(repeat('ab', ${n / 2}), repeat('ba', ${n / 2}))`,
  },
  'distance of lists': {
    sizes: [1e4, 1e5, 1e6],
    statement: (n) => `SELECT arrayLevenshteinDistance(range(${n}), range(${n}))`,
  },
  'similarity of lists': {
    sizes: [1e5],
    statement: (n) => `SELECT arraySimilarity(range(${n}), range(${n}), range(${n}), range(${n}))`,
  },
  'exact Kolmogorov-Smirnov': {
    sizes: [1e5, 1e6],
    statement: (n) => `SELECT kolmogorovSmirnovTest('two-sided', 'exact')(number, number % 2) FROM numbers(${n})`,
  },
  'all of a list': { sizes: [1e5, 1e6], statement: (n) => `SELECT hasAll(range(${n}), range(${n}))` },
  'many needles': {
    sizes: [1e5],
    statement: (n) => `SELECT multiSearchAny(repeat('ab ', ${n}), arrayMap(x -> toString(x), range(${n})))`,
  },
  'many patterns': {
    sizes: [1e5],
    statement: (n) => `SELECT multiMatchAny('a', arrayMap(x -> toString(x), range(${n})))`,
  },
  'approximate top': { sizes: [1e6], statement: (n) => `SELECT topK(${n})(number) FROM numbers(${n})` },
  'large numbers': { sizes: [1e9, 1e18], statement: (n) => `SELECT sum(cityHash64(number)) FROM numbers(${n})` },
  'large texts': { sizes: [1e6, 1e9], statement: (n) => `SELECT length(repeat('x', ${n})) FROM numbers(1000)` },
  'large lists': { sizes: [1e6, 1e9], statement: (n) => `SELECT arraySum(range(${n}))` },
  joins: { sizes: [1e8], statement: (n) => `SELECT count() FROM numbers(${n}) AS a CROSS JOIN numbers(${n}) AS b` },
  patterns: {
    sizes: [1e5],
    statement: (n) => `SELECT replaceRegexpAll(repeat('a', ${n}), '(a*)*b', '') FROM numbers(1000)`,
  },
};

/** What is planned. */
const PLANNED: Readonly<Record<string, DearKind>> = {
  'names of sub-selects': {
    sizes: [3, 6, 9, 12, 20, 40],
    statement: (n) =>
      `WITH a0 AS (SELECT 1 AS n), ${list(n, (i) => `a${i + 1} AS (SELECT n FROM a${i} AS x JOIN a${i} AS y USING n)`)} SELECT count() FROM a${n}`,
  },
  'names of the views': {
    sizes: [2, 3],
    statement: (n) =>
      `WITH events AS (SELECT 1 AS n), users AS (SELECT n FROM ${list(10 ** n, (i) => `events AS e${i}`)}) SELECT count() FROM users`,
  },
  'names of values': {
    sizes: [8, 16, 40, 200],
    statement: (n) => `WITH 1 AS a0, ${list(n, (i) => `a${i} + a${i} AS a${i + 1}`)} SELECT a${n}`,
  },
  'names in one list': {
    sizes: [8, 16, 40],
    statement: (n) => `SELECT 1 AS a0, ${list(n, (i) => `a${i} + a${i} AS a${i + 1}`)}`,
  },
  'all columns': { sizes: [6, 12, 20, 40], statement: (n) => nested(n, 'SELECT 1', (s) => `SELECT *, * FROM (${s})`) },
  unions: { sizes: [50, 300, 3_000], statement: (n) => list(n, () => 'SELECT 1', ' UNION ALL ') },
  windows: {
    sizes: [20, 200, 1_000],
    statement: (n) => `SELECT ${list(n, (i) => `sum(number) OVER (ORDER BY number % ${i + 2})`)} FROM numbers(10)`,
  },
  'joins of a list': {
    sizes: [10, 60, 300],
    statement: (n) =>
      `SELECT count() FROM events AS t ${list(n, (i) => `JOIN events AS t${i} ON t${i}.user_id = t.user_id`, ' ')}`,
  },
  'joins of joins': {
    sizes: [3, 6, 9],
    statement: (n) =>
      nested(n, 'SELECT 1 AS n', (s, i) => `SELECT n FROM (${s}) AS a${i} JOIN (${s}) AS b${i} USING n`),
  },
  cubes: {
    sizes: [8, 16, 24],
    statement: (n) => `SELECT count() FROM numbers(1) GROUP BY CUBE(${list(n, (i) => `number % ${i + 2}`)})`,
  },
  lambdas: {
    sizes: [10, 40, 400],
    statement: (n) =>
      `SELECT arrayMap(x -> ${nested(n, 'x', (s, i) => `arraySum(arrayMap(x${i} -> ${s}, [1, 2]))`)}, [1])`,
  },
  'nested sub-selects': { sizes: [20, 200], statement: (n) => nested(n, 'SELECT 1', (s) => `SELECT * FROM (${s})`) },
  'sub-selects as values': {
    sizes: [20, 300],
    statement: (n) => `SELECT ${list(n, (i) => `(SELECT count() FROM events WHERE event = '${i}')`)}`,
  },
};

/** All kinds, in each of their sizes. */
export const DEAR_STATEMENTS: readonly string[] = Object.values({ ...COMPUTED, ...PLANNED }).flatMap(
  ({ sizes, statement }) => sizes.map(statement),
);

/** The kinds of what is planned, to choose sizes of at random. */
export const PLANNED_KINDS: readonly DearKind['statement'][] = Object.values(PLANNED)
  .filter(({ sizes }) => sizes.length > 1 && (sizes[0] as number) > 3)
  .map(({ statement }) => statement);
