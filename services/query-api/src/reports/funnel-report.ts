import { parseJson } from '@sluice/shared/json';
import type { Row } from '../clickhouse/row-parser.ts';
import type { FunnelRequest } from './funnel-parameters.ts';
import { ALL_GROUPS } from './funnel-query.ts';

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

/** A row of {@link funnelQuery}. */
type PartRow = readonly [part: string, counts: readonly number[], mediansMs: readonly (number | null)[]];

/**
 * Returns the report of a funnel.
 *
 * @param rows of its query; `undefined` when it ran out of its time: then no number is known
 */
export function funnelReport(request: FunnelRequest, rows: readonly Row[] | undefined): FunnelReport {
  const { groupBy, selection } = request;
  const parts = rows as readonly PartRow[] | undefined;
  const all = parts?.find(([part]) => part === ALL_GROUPS);
  const groups = parts?.filter(([part]) => part !== ALL_GROUPS);
  return {
    steps: stepCounts(request, all, parts ? 0 : null),
    groupBy: groupBy ? [groupBy] : [],
    ...(groupBy &&
      groups && {
        groups: groups.map((part) => ({ group: [parseJson(part[0])], steps: stepCounts(request, part, 0) })),
      }),
    startDate: new Date(selection.startMs).toISOString(),
    endDate: new Date(selection.endMs).toISOString(),
    complete: parts !== undefined,
    exact: true,
  };
}

/** @param countWithoutPart the count of every step when there is no row of the part: nobody began, or nobody knows */
function stepCounts(
  { steps }: FunnelRequest,
  part: PartRow | undefined,
  countWithoutPart: 0 | null,
): FunnelStepCount[] {
  const [, counts = [], mediansMs = []] = part ?? [];
  return steps.map(({ event }, index) => ({
    event,
    count: counts[index] ?? countWithoutPart,
    medianSecondsFromPrevious: inSeconds(mediansMs[index - 1]),
  }));
}

function inSeconds(ms: number | null | undefined): number | null {
  return ms === null || ms === undefined ? null : Math.round(ms) / 1_000;
}
