import type { Row } from '../clickhouse/row-parser.ts';
import type { RetentionRequest } from './retention-parameters.ts';

/** The users whose first matching event in the range lies in one interval. */
export interface Cohort {
  /** When the interval begins, also when the range begins later. */
  readonly start: string;
  readonly size: number;
  /** For 0, 1, 2, … intervals later: how many of them returned. After 0 intervals it is all of them. */
  readonly returned: readonly number[];
}

/** The response of `GET /events/retention`. */
export interface RetentionReport {
  readonly interval: string;
  readonly timeZone: string;
  readonly periods: number;
  /** One for each interval of the range; none when the query ran out of its time. */
  readonly cohorts: readonly Cohort[];
  readonly startDate: string;
  readonly endDate: string;
  readonly complete: boolean;
  readonly exact: boolean;
}

/** A row of the query for retention. */
type ReturnsRow = readonly [cohort: number, later: number, users: number];

/**
 * Returns the report of retention.
 *
 * @param rows of its query; `undefined` when it ran out of its time. Then there are no cohorts: without the events of
 *   the whole range it is not known whose first event an event is.
 */
export function retentionReport(request: RetentionRequest, rows: readonly Row[] | undefined): RetentionReport {
  const { selection, interval, timeZone, periods, starts } = request;
  const cohorts = (rows === undefined ? [] : starts).map((start) => ({
    start: new Date(start).toISOString(),
    size: 0,
    returned: new Array<number>(periods).fill(0),
  }));
  for (const [index, later, users] of (rows ?? []) as readonly ReturnsRow[]) {
    const cohort = cohorts[index];
    if (!cohort) throw new Error(`there is no interval ${index}`);
    cohort.returned[later] = users;
    if (later === 0) cohort.size = users;
  }
  return {
    ...{ interval, timeZone, periods, cohorts },
    startDate: new Date(selection.startMs).toISOString(),
    endDate: new Date(selection.endMs).toISOString(),
    complete: rows !== undefined,
    exact: true,
  };
}
