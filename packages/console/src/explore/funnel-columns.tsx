import { useMemo, useState } from 'preact/hooks';
import { type Funnel, formatNumber, formatShare } from '../base/base.ts';
import { Legend, labelOfKey, strokeOf, useHiding } from '../charts/charts.ts';
import { partName } from './drawing.tsx';

/** A group at one step; shares are of its own first step, from 0 to 1. */
interface Bar {
  readonly label: string;
  readonly count: number | null;
  readonly share: number;
  /** The share that got to the step before and not to this one. */
  readonly lost: number;
}

interface Column {
  readonly event: string;
  readonly bars: readonly Bar[];
}

/** More groups side by side cannot be told apart; the table has all. */
const GROUPS_MAX = 10;

/** Returns the columns of a funnel: one for each step, with a bar for each group, or one for all together. */
export function columnsOf({ steps, groups = [], groupBy }: Pick<Funnel, 'steps' | 'groups' | 'groupBy'>): Column[] {
  const series =
    groupBy.length === 0
      ? [{ label: 'All', own: steps }]
      : groups.slice(0, GROUPS_MAX).map(({ group: [key], steps: own }) => ({ label: labelOfKey(key ?? null), own }));
  return steps.map(({ event }, index) => ({
    event,
    bars: series.map(({ label, own }) => {
      const shareAt = (step: number) => (own[step]?.count ?? 0) / (own[0]?.count || 1);
      const share = shareAt(index);
      return { label, count: own[index]?.count ?? null, share, lost: index === 0 ? 0 : shareAt(index - 1) - share };
    }),
  }));
}

interface FunnelColumnsProps {
  readonly response: Funnel;
  /** Who is counted, such as `Users`. */
  readonly who: string;
  /** The name of the view, where a page draws several. */
  readonly title: string | undefined;
}

/** A funnel as columns, with the lost part of each; a table must have the same numbers. */
export function FunnelColumns({ response, who, title }: FunnelColumnsProps) {
  const columns = useMemo(() => columnsOf(response), [response]);
  const names = useMemo(() => columns[0]?.bars.map(({ label }) => label) ?? [], [columns]);
  const hiding = useHiding(names);
  const [pointed, setPointed] = useState<number>();
  const isGrouped = response.groupBy.length > 0;
  return (
    <figure class="funnel-columns">
      {isGrouped && (
        <Legend {...{ names, ...hiding }} label={partName('Groups of the funnel', title)} onPoint={setPointed} />
      )}
      <div class="columns" role="img" aria-label={partName(`${who} at each step as columns`, title)}>
        {columns.map(({ event, bars }, step) => (
          <div key={step}>
            <div class="bars">
              {bars.map((bar, index) =>
                hiding.hidden.has(index) ? null : (
                  <ColumnBar key={index} {...bar} color={index} isFaded={pointed !== undefined && pointed !== index} />
                ),
              )}
            </div>
            <strong>
              {step + 1}. <bdi>{event}</bdi>
            </strong>
            {!isGrouped && bars[0] && <Lost {...bars[0]} before={columns[step - 1]?.bars[0]?.count ?? null} />}
          </div>
        ))}
      </div>
    </figure>
  );
}

/** How many got to a step, and how many were lost before it. */
function Lost({ count, before }: Bar & { readonly before: number | null }) {
  return (
    <span class="muted">
      {formatNumber(count)}
      {count !== null && before !== null && before > 0 && (
        <>
          , lost {formatNumber(before - count)} ({formatShare((before - count) / before)})
        </>
      )}
    </span>
  );
}

/** The room above a column, for its share, in percent of its height. */
const ABOVE = 14;

interface ColumnBarProps extends Bar {
  readonly color: number;
  readonly isFaded: boolean;
}

function ColumnBar({ label, count, share, lost, color, isFaded }: ColumnBarProps) {
  const heightOf = (part: number) => (100 - ABOVE) * Math.min(1, Math.max(0, part));
  const top = 100 - heightOf(share + lost);
  return (
    <span class={isFaded ? 'bar-of faded' : 'bar-of'} title={`${label}: ${formatNumber(count)}`}>
      <svg viewBox="0 0 10 100" preserveAspectRatio="none" aria-hidden="true" class={`color-${strokeOf(color).color}`}>
        <rect class="lost" y={top} width="10" height={heightOf(lost)} />
        <rect y={100 - heightOf(share)} width="10" height={heightOf(share)} />
      </svg>
      <span>{formatShare(share)}</span>
    </span>
  );
}
