import type { QueryRead, ReadDependencies } from '../../store/read-route.ts';
import type { Row } from '../../store/row-parser.ts';
import type { Sql } from '../../store/sql.ts';
import type { Tables } from '../../store/tables.ts';
import { keyValue, nameOfKey } from '../group-key.ts';
import { collectingSettings, reportRows } from '../report-runner.ts';
import { type FunnelRequest, parseFunnelRequest } from './funnel-parameters.ts';
import { type FunnelRow, funnelQuery } from './funnel-query.ts';

/** Returns `GET /events/funnel`: how many get from one event to the next. */
export function funnelRead({ config, queryRunner }: ReadDependencies): QueryRead<FunnelRequest> {
  const settings = collectingSettings(config);
  return {
    path: '/events/funnel',
    parse: parseFunnelRequest,
    async respond(request, context, reply) {
      const hiding = (tables: Tables, hidden: Sql | undefined) => funnelQuery(tables, request, hidden);
      const rows = await reportRows(queryRunner, { kind: 'funnel', hiding, settings, ...context });
      return await reply.send(funnelReport(request, rows));
    },
  };
}

/** How many persons completed a step. */
export interface FunnelStepCount {
  readonly event: string;
  /** `null`: not known, since the query ran out of its time. */
  readonly count: number | null;
  /** `null` for the first step as well, and for a step that nobody completed. */
  readonly medianSecondsFromPrevious: number | null;
}

export interface FunnelGroup {
  readonly group: readonly unknown[];
  readonly steps: readonly FunnelStepCount[];
}

/** The response of `GET /events/funnel`. */
export interface FunnelReport {
  readonly steps: readonly FunnelStepCount[];
  readonly groupBy: readonly string[];
  /** The largest groups; left out without `groupBy`, and when the query ran out of its time. */
  readonly groups?: readonly FunnelGroup[];
  readonly startDate: string;
  readonly endDate: string;
  readonly complete: boolean;
  readonly exact: boolean;
}

/**
 * Returns the report of a funnel.
 *
 * @param rows of its query; `undefined` when it ran out of its time: then no number is known
 */
export function funnelReport(request: FunnelRequest, rows: readonly Row[] | undefined): FunnelReport {
  const { groupBy, selection } = request;
  const parts = rows as readonly FunnelRow[] | undefined;
  const groups = parts?.filter(([whole]) => !whole);
  return {
    steps: stepCounts(
      request,
      parts?.find(([whole]) => whole),
      parts ? 0 : null,
    ),
    groupBy: groupBy ? [nameOfKey(groupBy)] : [],
    ...(groupBy &&
      groups && {
        groups: groups.map((row) => ({ group: [keyValue(groupBy, row[1])], steps: stepCounts(request, row, 0) })),
      }),
    startDate: new Date(selection.startMs).toISOString(),
    endDate: new Date(selection.endMs).toISOString(),
    complete: parts !== undefined,
    exact: true,
  };
}

/** @param countWithoutRow the count of every step when there is no row: nobody began, or it is not known */
function stepCounts(
  { steps }: FunnelRequest,
  row: FunnelRow | undefined,
  countWithoutRow: 0 | null,
): FunnelStepCount[] {
  const [, , counts = [], mediansMs = []] = row ?? [];
  return steps.map(({ event }, index) => ({
    event,
    count: counts[index] ?? countWithoutRow,
    medianSecondsFromPrevious: inSeconds(mediansMs[index - 1]),
  }));
}

function inSeconds(ms: number | null | undefined): number | null {
  return ms === null || ms === undefined ? null : Math.round(ms) / 1_000;
}
