import { Turns } from '@sluice/shared/base/turns';
import type { Reservation } from '@sluice/shared/http/memory-budget';
import { sendJson } from '../../http/json-response.ts';
import { reserve } from '../../http/request-memory.ts';
import type { Query } from '../../store/query.ts';
import type { QueryRead, ReadDependencies } from '../../store/read-route.ts';
import type { Row } from '../../store/row-parser.ts';
import type { Sql } from '../../store/sql.ts';
import type { Tables } from '../../store/tables.ts';
import { collectingSettings, readReport } from '../report-runner.ts';
import { parseRetentionRequest, type RetentionRequest } from './retention-parameters.ts';
import { retentionQuery, WHOLE_COHORT } from './retention-query.ts';

/** Returns `GET /events/retention`: how many users come back, and when. */
export function retentionRead({ config, queryRunner }: ReadDependencies): QueryRead<RetentionRequest> {
  const settings = collectingSettings(config);
  return {
    path: '/events/retention',
    repeats: true,
    parse: parseRetentionRequest,
    async respond(request, context, reply) {
      const hiding = (tables: Tables, hidden: Sql | undefined) => retentionQuery(tables, request, hidden);
      const query: Query = { kind: 'retention', hiding, settings, ...context };
      const returns = new Returns(request, context.memory);
      const isWhole = await readReport(queryRunner, query, (row) => returns.add(row));
      return await sendJson(reply, retentionJson(request, isWhole ? returns : undefined));
    },
  };
}

/** The users whose first matching event in the range lies in one interval. */
export interface Cohort {
  /** When the interval begins, also when the range begins later. */
  readonly start: string;
  readonly size: number;
  /** For 0, 1, 2, … intervals later: how many of them returned. */
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

/** A longer report is sent in chunks. */
const CHUNK_CHARACTERS = 64 * 1_024;

/** A row of the query for retention. */
type ReturnsRow = readonly [cohort: number, later: number, users: number];

/** Collects the rows of retention. */
export class Returns {
  readonly #periods: number;
  /** By cohort. */
  readonly #sizes: Float64Array;
  /** By cohort and period. */
  readonly #users: Float64Array;

  /** @throws {Problem} `overloaded` */
  constructor({ starts, periods }: RetentionRequest, memory: Reservation | undefined) {
    reserve(memory, starts.length * (periods + 1) * Float64Array.BYTES_PER_ELEMENT);
    this.#periods = periods;
    this.#sizes = new Float64Array(starts.length);
    this.#users = new Float64Array(starts.length * periods);
  }

  add(row: Row): void {
    const [cohort, later, users] = row as ReturnsRow;
    if (later === WHOLE_COHORT) this.#sizes[cohort] = users;
    else this.#users[cohort * this.#periods + later] = users;
  }

  sizeOf(cohort: number): number {
    return this.#sizes[cohort] ?? 0;
  }

  of(cohort: number): readonly number[] {
    return [...this.#users.subarray(cohort * this.#periods, (cohort + 1) * this.#periods)];
  }
}

/**
 * Returns the JSON of a {@link RetentionReport}, in chunks.
 *
 * @param returns `undefined` when the query ran out of its time. Then there are no cohorts: without the events of the whole
 *   range it is not known whose first event an event is.
 */
export async function* retentionJson(
  request: RetentionRequest,
  returns: Returns | undefined,
): AsyncGenerator<string, void, undefined> {
  const { selection, interval, timeZone, periods, starts } = request;
  const turns = new Turns();
  let text = `${JSON.stringify({ interval, timeZone, periods }).slice(0, -1)},"cohorts":[`;
  for (const [index, start] of (returns ? starts : []).entries()) {
    const returned = returns?.of(index) ?? [];
    const cohort: Cohort = { start: new Date(start).toISOString(), size: returns?.sizeOf(index) ?? 0, returned };
    text += `${index === 0 ? '' : ','}${JSON.stringify(cohort)}`;
    if (text.length < CHUNK_CHARACTERS) continue;
    yield text;
    text = '';
    await turns.next();
  }
  const end = {
    startDate: new Date(selection.startMs).toISOString(),
    endDate: new Date(selection.endMs).toISOString(),
    complete: returns !== undefined,
    exact: true,
  };
  yield `${text}],${JSON.stringify(end).slice(1)}`;
}
