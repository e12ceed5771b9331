import { type InputError, Problem } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import {
  BUCKETS_MAX,
  describer,
  encodeCursor,
  jsonResponse,
  LIMIT_DEFAULT,
  limitSchema,
  nextCursorSchema,
  once,
  readCursor,
  timeSchema,
} from '../../http/http.ts';
import {
  cursorParameter,
  isoTime,
  limitParameter,
  parseParameters,
  querySchema,
  refuseErrors,
  START_AFTER_END,
  selectionParameters,
} from '../../records/records.ts';
import { reportBuckets } from '../../reports/reports.ts';
import {
  type ReadDependencies,
  type RequestContext,
  RequestQueries,
  registerRead,
  type Sql,
  type Tables,
  TimeBudget,
  withDeletions,
} from '../../store/store.ts';
import {
  AUDITED_KINDS,
  type AuditRow,
  auditsQuery,
  BOOKS_INTERVALS,
  type Books,
  type BooksInterval,
  type BooksRange,
  type BooksRow,
  booksOf,
  booksOfAuditsQuery,
  booksOfWorkspacesQuery,
  booksQuery,
  COUNTED,
  type DifferenceRow,
  type DifferingHoursRow,
  differencesQuery,
  differingHour,
  differingHoursQuery,
  hasDifferences,
} from './audits-query.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** How long the range is, unless the request says when it begins, in days. */
const DAYS_DEFAULT = 30;

/** The newest audits that are listed. */
const AUDITS_LISTED = 20;

/** Differences that are listed. */
const DIFFERENCES_LISTED = 100;

/** The dates of a request for books. */
const datesParameters = {
  startDate: selectionParameters.startDate.meta({
    description: `Hours that begin at this time or later. ISO 8601, in UTC without a zone. Default: ${DAYS_DEFAULT} days before \`endDate\`.`,
  }),
  endDate: selectionParameters.endDate.meta({
    description: 'Hours that begin at this time or before. A date alone is its last millisecond. Default: now.',
  }),
} as const;

/** The parameters of `GET /audits`. */
export const auditsParameters = {
  ...datesParameters,
  interval: z.enum(BOOKS_INTERVALS, `must be one of ${BOOKS_INTERVALS.join(', ')}`).meta({
    default: 'day',
    description: `What books are summed by, in UTC. At most ${BUCKETS_MAX} intervals.`,
  }),
} as const;

/** The parameters of `GET /audits/workspaces`. */
export const auditedWorkspacesParameters = {
  ...datesParameters,
  limit: limitParameter,
  cursor: cursorParameter('dates'),
} as const;

interface AuditsRequest extends BooksRange {
  readonly interval: BooksInterval;
  /** When each interval begins. */
  readonly starts: readonly number[];
}

/** Returns the range of the dates. Adds an error when they are in the wrong order. */
function rangeOf(
  { startDate, endDate = Date.now() }: { readonly startDate?: number; readonly endDate?: number },
  errors: InputError[],
): BooksRange {
  const startMs = startDate ?? Math.floor(endDate / DAY_MS - DAYS_DEFAULT) * DAY_MS;
  if (startMs > endDate) errors.push(START_AFTER_END);
  return { startMs, endMs: endDate };
}

/** @throws {Problem} `invalid_request`, naming every error */
function parseAuditsRequest(query: QueryParameters): AuditsRequest {
  const { values, errors: found } = parseParameters(auditsParameters, { fields: {}, documents: [] }, query);
  const errors = [...found];
  const { interval = 'day' } = values;
  const range = rangeOf(values, errors);
  const starts = errors.length > 0 ? [] : reportBuckets(interval, 'UTC', range, errors);
  refuseErrors(errors);
  return { ...range, interval, starts };
}

interface WorkspacesRequest extends BooksRange {
  readonly limit: number;
  readonly after: string;
  /** What a cursor belongs to. */
  readonly list: unknown;
}

/** @throws {Problem} `invalid_request`, naming every error */
function parseWorkspacesRequest(query: QueryParameters): WorkspacesRequest {
  const { values, errors: found } = parseParameters(auditedWorkspacesParameters, { fields: {}, documents: [] }, query);
  const errors = [...found];
  const { limit = LIMIT_DEFAULT, cursor, startDate, endDate } = values;
  const list = ['audited-workspaces', startDate, endDate];
  const range = rangeOf(values, errors);
  const [after = ''] = readCursor(cursor, { list, sortKey: z.tuple([z.string()]), repeat: 'dates' }, errors) ?? [];
  refuseErrors(errors);
  return { ...range, limit, after, list };
}

/** Registers what audits have found: of the workspace of the key, and for operators of all workspaces. */
export function registerAudits(app: FastifyInstance, { config, queryRunner }: ReadDependencies): void {
  const queriesOf = (context: RequestContext) =>
    new RequestQueries(queryRunner, context, new TimeBudget(config.QUERY_TIMEOUT_MS));

  registerRead(app, {
    path: '/audits',
    describe: describeAudits,
    parse: ({ query }) => parseAuditsRequest(query),
    async respond({ interval, starts, ...range }, context, reply) {
      const queries = queriesOf(context);
      const audits = await read<AuditRow>(queries, auditsQuery);
      const rows = await read<BooksRow<number>>(queries, (tables) => booksQuery(tables, interval, range));
      const listed = audits.slice(0, AUDITS_LISTED);
      const ids = listed.map(([id]) => id);
      const ofAudits = await read<BooksRow<string>>(queries, (tables) => booksOfAuditsQuery(tables, ids));
      const windows = windowsOf(audits);
      const books = booksOfIntervals(rows, windows, starts, range);
      const differences = books.some(hasDifferences) ? await readDifferences(queries, range) : [];
      const ofAudit = new Map(ofAudits.map(([id, ...sums]) => [id, booksOf(sums)]));
      return await reply.send({
        interval,
        startDate: isoTime(range.startMs),
        endDate: isoTime(range.endMs),
        auditedThrough: auditedThrough(windows),
        books,
        audits: listed.map((row) => ({ ...auditOf(row), books: ofAudit.get(row[0]) ?? null })),
        differences,
      });
    },
  });

  registerRead(app, {
    path: '/audits/workspaces',
    describe: describeWorkspaces,
    scope: 'admin',
    parse(request) {
      // Whoever manages a workspace is told nothing of others.
      if (request.workspace !== config.OPERATOR_WORKSPACE) {
        throw new Problem('missing_scope', 'Only keys of the workspace that OPERATOR_WORKSPACE names read this.');
      }
      return parseWorkspacesRequest(request.query);
    },
    async respond({ limit, after, list, ...range }, context, reply) {
      const rows = await read<BooksRow<string>>(queriesOf(context), (tables) =>
        booksOfWorkspacesQuery(tables, range, after, limit + 1),
      );
      const page = rows.slice(0, limit);
      const last = page.at(-1);
      return await reply.send({
        limit,
        startDate: isoTime(range.startMs),
        endDate: isoTime(range.endMs),
        results: page.map(([workspace, ...sums]) => ({ workspace, ...booksOf(sums) })),
        nextCursor: last && rows.length > limit ? encodeCursor(list, [last[0]]) : null,
      });
    },
  });
}

async function read<Row>(queries: RequestQueries, statement: (tables: Tables) => Sql): Promise<readonly Row[]> {
  return (await queries.all('audits', statement, { pool: 'reports' })) as unknown as readonly Row[];
}

/** Reads what the newest audits of the hours of a range have recorded, without what names users who were deleted since then. */
async function readDifferences(queries: RequestQueries, range: BooksRange) {
  const found = await read<DifferingHoursRow>(queries, (tables) => differingHoursQuery(tables, range));
  const hours = new Map(found.map(([audit, ofAudit]) => [audit, new Set(ofAudit)]));
  const rows = await read<DifferenceRow>(queries, (tables) => differencesQuery(tables, [...hours.keys()]));
  const current = rows.filter(([audit, hourMs, kind]) => hours.get(audit)?.has(differingHour(hourMs, kind)));
  const users = current.flatMap((row) => userOf(row) ?? []);
  const [, deletions] = await withDeletions(queries, [...new Set(users)], async () => undefined);
  const shown = current.filter((row) => {
    const [user, [, hourMs]] = [userOf(row), row];
    return user === undefined || !deletions.hide(user, hourMs * 1_000);
  });
  return shown.slice(0, DIFFERENCES_LISTED).map(differenceOf);
}

/** Returns the user whose change a difference is about, if it is about one. */
function userOf([, , kind, , key]: DifferenceRow): string | undefined {
  if (kind !== 'changes') return undefined;
  const [entity, id] = JSON.parse(key) as readonly string[];
  return entity === 'user' ? id : undefined;
}

/** A time that an audit of all rows has looked at, in milliseconds; it ends before `untilMs`. */
interface AuditedWindow {
  readonly sinceMs: number;
  readonly untilMs: number;
}

/** Returns what audits of all rows have looked at on each server. */
function windowsOf(audits: readonly AuditRow[]): readonly (readonly AuditedWindow[])[] {
  const whole = audits.filter(([, , , , , , shares]) => shares === 1);
  const byServer = Map.groupBy(whole, ([, , , , , , , shard]) => shard);
  return [...byServer.values()].map((ofServer) => ofServer.map(([, , , sinceMs, untilMs]) => ({ sinceMs, untilMs })));
}

/** Returns up to when rows are audited on each server; `null` without an audit. */
function auditedThrough(windows: readonly (readonly AuditedWindow[])[]): string | null {
  const ends = windows.map((ofServer) => Math.max(...ofServer.map(({ untilMs }) => untilMs)));
  return ends.length === 0 ? null : isoTime(Math.min(...ends));
}

/** Returns the books of the intervals that audits have looked at, or that have rows. */
function booksOfIntervals(
  rows: readonly BooksRow<number>[],
  windows: readonly (readonly AuditedWindow[])[],
  starts: readonly number[],
  { startMs, endMs }: BooksRange,
): ({ readonly start: string; readonly auditedHours: number } & Books)[] {
  const sums = new Map(rows.map(([start, ...sums]) => [start, sums]));
  const hoursOn = windows.map(hoursIn);
  return starts.flatMap((start, index) => {
    const [from, until] = [Math.max(start, startMs), Math.min(starts[index + 1] ?? endMs + 1, endMs + 1)];
    const auditedHours = hoursOn.length === 0 ? 0 : Math.min(...hoursOn.map((hours) => hours(from, until)));
    const own = sums.get(start);
    if (auditedHours === 0 && !own) return [];
    return [{ start: isoTime(start) as string, auditedHours, ...booksOf(own ?? NOTHING) }];
  });
}

const NOTHING: readonly number[] = Array.from({ length: AUDITED_KINDS.length * Object.keys(COUNTED).length }, () => 0);

/** Returns a function that counts the hours which begin in some windows, each once, from one time up to another one. */
function hoursIn(windows: readonly AuditedWindow[]): (fromMs: number, untilMs: number) => number {
  const joined: { sinceMs: number; untilMs: number }[] = [];
  for (const { sinceMs, untilMs } of windows.toSorted((a, b) => a.sinceMs - b.sinceMs)) {
    const last = joined.at(-1);
    if (last && sinceMs <= last.untilMs) last.untilMs = Math.max(last.untilMs, untilMs);
    else joined.push({ sinceMs, untilMs });
  }
  return (fromMs, untilMs) =>
    joined.reduce((hours, window) => {
      const [from, until] = [Math.max(fromMs, window.sinceMs), Math.min(untilMs, window.untilMs)];
      return hours + Math.max(0, Math.ceil(until / HOUR_MS) - Math.ceil(from / HOUR_MS));
    }, 0);
}

function auditOf([id, startedMs, finishedMs, sinceMs, untilMs, share, shares]: AuditRow) {
  return {
    id,
    startedAt: isoTime(startedMs),
    finishedAt: isoTime(finishedMs),
    since: isoTime(sinceMs),
    until: isoTime(untilMs),
    ...{ share, shares },
  };
}

function differenceOf(row: DifferenceRow) {
  const [auditId, hourMs, kind, difference, key, topic, partition, offset, line, detail] = row;
  return { auditId, hour: isoTime(hourMs), kind, difference, key, topic, partition, offset, line, detail };
}

const DESCRIPTIONS: Readonly<Record<keyof typeof COUNTED, string>> = {
  accepted: 'Rows of this kind that the log has: the sum of all that follow, up to `missing`.',
  stored: 'Rows that are stored.',
  repeats: 'Rows that repeat a stored one, and are not stored for that.',
  deadLetters: 'Rows that are dead letters.',
  deleted: 'Rows of users who were deleted.',
  expired: 'Rows that are older than what is kept.',
  waiting: 'Rows that were not stored yet when the audit looked.',
  givenUp: 'Rows of a halted partition that the operator gave up.',
  unknown: 'Rows of which nothing that is left says where they are.',
  missing: 'Rows that are nowhere.',
  invented: 'Rows that are stored, and not in the log.',
  duplicates: 'Visible rows beyond the first one of their key.',
};

const booksSchema = once(() => {
  const count = z.int().min(0);
  const counts = z
    .object(
      Object.fromEntries(
        Object.entries(DESCRIPTIONS).map(([name, description]) => [name, count.meta({ description })]),
      ) as Record<keyof typeof COUNTED, typeof count>,
    )
    .meta({ id: 'AuditedCounts' });
  return z
    .object({
      events: counts,
      changes: counts.meta({ description: 'Of users and organizations.' }),
      rejected: counts.meta({ description: 'Calls that ingest-api could not take.' }),
    })
    .meta({ id: 'Books' });
});

const schemas = once(() => {
  const count = z.int().min(0);
  const books = booksSchema();
  const range = { startDate: timeSchema, endDate: timeSchema };
  const difference = z
    .object({
      auditId: z.string(),
      hour: timeSchema.meta({ description: 'When the hour of receipt begins.' }),
      kind: z.string().meta({ description: '`events`, `changes` or `rejected`.' }),
      difference: z.string().meta({ description: '`missing`, `invented` or `duplicate`.' }),
      key: z.string().meta({ description: 'The uuid of an event; of a change, whose it is and its property.' }),
      topic: z
        .string()
        .meta({ description: 'Where it is in Kafka, if it is there: topic, partition, offset and line.' }),
      partition: count.nullable(),
      offset: z.string().nullable(),
      line: count.nullable(),
      detail: z.string().meta({ description: 'What the audit looked at.' }),
    })
    .meta({ id: 'AuditDifference' });
  const audits = z
    .object({
      interval: z.enum(BOOKS_INTERVALS),
      ...range,
      auditedThrough: timeSchema.nullable().meta({
        description: 'Up to when rows were received that an audit has looked at; `null`: there was none.',
      }),
      books: z
        .array(
          books.extend({
            start: timeSchema.meta({ description: 'When the interval begins, in UTC.' }),
            auditedHours: count.meta({ description: 'How many of its hours were audited.' }),
          }),
        )
        .meta({
          description:
            'What became of the rows that were received in each interval, as the newest audit of each hour found it. Intervals without an audit are left out.',
        }),
      audits: z
        .array(
          z.object({
            id: z.string(),
            startedAt: timeSchema,
            finishedAt: timeSchema,
            since: timeSchema.meta({ description: 'It looked at rows that were received from this time on,' }),
            until: timeSchema.meta({ description: 'and before this one.' }),
            share: count,
            shares: count.meta({ description: '1: it looked at all rows; more: at one of so many samples.' }),
            books: books.nullable().meta({
              description:
                'Of those hours that no later audit has looked at; `null`: there are none, or it was a sample, which has no books.',
            }),
          }),
        )
        .meta({ description: `The newest complete audits that looked at the workspace, ${AUDITS_LISTED} at most.` }),
      differences: z.array(difference).meta({
        description: `What does not balance in these books, ${DIFFERENCES_LISTED} rows at most. An audit records the first hundred of all workspaces.`,
      }),
    })
    .meta({ id: 'Audits' });
  const workspaces = z
    .object({
      limit: limitSchema,
      ...range,
      results: z.array(books.extend({ workspace: z.string() })),
      nextCursor: nextCursorSchema,
    })
    .meta({ id: 'AuditedWorkspaces' });
  return { audits, workspaces };
});

const describing = describer({ tag: 'audits' });

const describeAudits = describing('getAudits', 'Whether all that was accepted is accounted for', () => ({
  description:
    'An audit compares the log of Kafka with what is stored. Books say for each kind of rows where the accepted ones are. Rows belong to the hour in which they were received.',
  requestParams: { query: querySchema(auditsParameters, {}) },
  responses: { 200: jsonResponse('The books of the workspace, and its audits.', schemas().audits) },
}));

const describeWorkspaces = describing('listAuditedWorkspaces', 'The books of all workspaces', () => ({
  description: 'For keys with the scope `admin` of the workspace that OPERATOR_WORKSPACE names.',
  ...{ scope: 'admin', keyOptional: false },
  requestParams: { query: querySchema(auditedWorkspacesParameters, {}) },
  responses: {
    200: jsonResponse('Those of the range by workspace, in the order of their names.', schemas().workspaces),
  },
}));
