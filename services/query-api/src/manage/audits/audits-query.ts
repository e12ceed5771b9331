import type { Sql, Tables } from '../../store/store.ts';

/** What rows are: events, changes of users and organizations, or calls that ingest-api could not take. */
export const AUDITED_KINDS = ['events', 'changes', 'rejected'] as const;

type AuditedKind = (typeof AUDITED_KINDS)[number];

/** What books count, each with its column. */
export const COUNTED = {
  accepted: 'accepted',
  stored: 'stored',
  repeats: 'repeats',
  deadLetters: 'dead_letters',
  deleted: 'deleted',
  expired: 'expired',
  waiting: 'waiting',
  givenUp: 'given_up',
  unknown: 'unknown',
  missing: 'missing',
  invented: 'invented',
  duplicates: 'duplicates',
} as const;

type Counts = Readonly<Record<keyof typeof COUNTED, number>>;

/** The books of some hours. */
export type Books = Readonly<Record<AuditedKind, Counts>>;

const NAMES = Object.keys(COUNTED) as readonly (keyof typeof COUNTED)[];

/** The sums of all counts, in the order that {@link booksOf} reads. */
const SUMS = AUDITED_KINDS.flatMap((kind) =>
  NAMES.map((name) => `toInt64(sumIf(${COUNTED[name]}, kind = '${kind}'))`),
).join(', ');

/** What books are of, and their sums. */
export type BooksRow<Group> = [group: Group, ...sums: number[]];

/** Returns the books in a row of {@link booksQuery}, {@link booksOfAuditsQuery} or {@link booksOfWorkspacesQuery}. */
export function booksOf(sums: readonly number[]): Books {
  const counts = (kind: number) =>
    Object.fromEntries(NAMES.map((name, index) => [name, sums[kind * NAMES.length + index]])) as Counts;
  return Object.fromEntries(AUDITED_KINDS.map((kind, index) => [kind, counts(index)])) as Books;
}

/** Whether an audit has found something in these hours. */
export function hasDifferences(books: Books): boolean {
  return AUDITED_KINDS.some((kind) => {
    const { missing, invented, duplicates } = books[kind];
    return missing + invented + duplicates > 0;
  });
}

/** The intervals that books are summed by, in UTC: the start of the one that has an hour. */
const INTERVAL_STARTS = {
  hour: 'hour',
  day: "toStartOfDay(hour, 'UTC')",
  month: "toDateTime(toStartOfMonth(hour, 'UTC'), 'UTC')",
} as const;

export type BooksInterval = keyof typeof INTERVAL_STARTS;
export const BOOKS_INTERVALS = Object.keys(INTERVAL_STARTS) as BooksInterval[];

/** Both ends are among the times; in milliseconds since 1970. */
export interface BooksRange {
  readonly startMs: number;
  readonly endMs: number;
}

/** The column `hour` begins and ends with these, in seconds since 1970. */
const HOUR_MAX = 2 ** 32 - 1;
const seconds = (ms: number) => Math.min(Math.max(Math.ceil(ms / 1_000), 0), HOUR_MAX);

const IN_RANGE = "hour >= toDateTime({from_second:UInt32}, 'UTC') AND hour <= toDateTime({to_second:UInt32}, 'UTC')";

function rangeParams({ startMs, endMs }: BooksRange): Sql['params'] {
  return { from_second: seconds(startMs), to_second: Math.floor(Math.min(Math.max(endMs / 1_000, 0), HOUR_MAX)) };
}

/** Returns the query for the books of a workspace: those of each interval with rows, by when it begins, in milliseconds. */
export function booksQuery(tables: Tables, interval: BooksInterval, range: BooksRange): Sql {
  return {
    sql: `SELECT toInt64(toUnixTimestamp(${INTERVAL_STARTS[interval]} AS start)) * 1000, ${SUMS}
FROM ${tables.auditedHours}
WHERE ${IN_RANGE}
GROUP BY start
ORDER BY start`,
    params: rangeParams(range),
  };
}

/** Returns the query for the books of a workspace of those hours that some audits were the last to look at, by audit. */
export function booksOfAuditsQuery(tables: Tables, ids: readonly string[]): Sql {
  return {
    sql: `SELECT toString(audit_id) AS audit, ${SUMS}
FROM ${tables.auditedHours}
WHERE toString(audit_id) IN {ids:Array(String)}
GROUP BY audit`,
    params: { ids },
  };
}

/** Returns the query for the books of the next workspaces that have some, in the order of their names. */
export function booksOfWorkspacesQuery(tables: Tables, range: BooksRange, after: string, count: number): Sql {
  return {
    sql: `SELECT toString(workspace_id) AS name, ${SUMS}
FROM ${tables.auditedHoursOfAllWorkspaces}
WHERE workspace_id > {after:String} AND ${IN_RANGE}
GROUP BY workspace_id
ORDER BY workspace_id
LIMIT {count:UInt64}`,
    params: { ...rangeParams(range), after, count },
  };
}

/** Times are in milliseconds. Of servers that have different rows, each is audited by itself. */
export type AuditRow = [
  id: string,
  startedMs: number,
  finishedMs: number,
  sinceMs: number,
  untilMs: number,
  share: number,
  shares: number,
  shard: number,
];

/** How many audits are looked at, the newest: those of three years, if one is made each night. */
const AUDITS_MAX = 1_000;

/** Returns the query for the newest complete audits that looked at a workspace. */
export function auditsQuery(tables: Tables): Sql {
  return {
    sql: `SELECT toString(id), toUnixTimestamp64Milli(started_at), toUnixTimestamp64Milli(assumeNotNull(finished_at)),
  toInt64(toUnixTimestamp(since)) * 1000, toInt64(toUnixTimestamp(until)) * 1000, share, shares,
  toInt64(shard)
FROM ${tables.audits}
WHERE finished_at IS NOT NULL
ORDER BY finished_at DESC, id
LIMIT ${AUDITS_MAX}`,
    params: {},
  };
}

/** The hours in which an audit was the last to look, and has found something. */
export type DifferingHoursRow = [auditId: string, hours: readonly string[]];

/** Returns an hour of {@link DifferingHoursRow}. */
export function differingHour(hourMs: number, kind: string): string {
  return `${hourMs / 1_000} ${kind}`;
}

/** The newest audits whose differences are looked at; each has recorded a hundred at most. */
const DIFFERING_AUDITS_MAX = 10;

/** Returns the query for the hours of a workspace in which audits have found something, by audit, the newest first. */
export function differingHoursQuery(tables: Tables, range: BooksRange): Sql {
  return {
    sql: `SELECT toString(audit_id) AS audit, groupArray(concat(toString(toUnixTimestamp(hour)), ' ', kind))
FROM ${tables.auditedHours}
WHERE ${IN_RANGE} AND (missing > 0 OR invented > 0 OR duplicates > 0)
GROUP BY audit
ORDER BY max(audited_at) DESC
LIMIT ${DIFFERING_AUDITS_MAX}`,
    params: rangeParams(range),
  };
}

/** The time is in milliseconds. */
export type DifferenceRow = [
  auditId: string,
  hourMs: number,
  kind: string,
  difference: string,
  key: string,
  topic: string,
  partition: number | null,
  offset: string | null,
  line: number | null,
  detail: string,
];

/** Returns the query for what audits have recorded of a workspace, the newest first. */
export function differencesQuery(tables: Tables, auditIds: readonly string[]): Sql {
  return {
    sql: `SELECT toString(audit_id), toInt64(toUnixTimestamp(hour)) * 1000, toString(kind), toString(difference), key,
  toString(topic), partition, toString(offset), line, detail
FROM ${tables.auditDifferences}
WHERE audit_id IN {ids:Array(UUID)}
ORDER BY recorded_at DESC, hour, key`,
    params: { ids: auditIds },
  };
}
