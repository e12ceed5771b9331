import { useMemo, useState } from 'preact/hooks';
import { formatShare } from '../base/base.ts';
import { Legend, strokeOf, useHiding } from '../charts/charts.ts';
import { partName } from './drawing.tsx';

interface Curve {
  readonly label: string;
  /** Which share came back 0, 1, 2, … intervals later, from 0 to 1. */
  readonly shares: readonly (number | null)[];
}

interface RetentionCurveProps {
  /** One for each group, or one for all. */
  readonly curves: readonly Curve[];
  readonly interval: string;
  /** The name of the view, where a page draws several. */
  readonly title: string | undefined;
}

const WIDTH = 640;
const HEIGHT = 220;
const [LEFT, RIGHT, TOP, BOTTOM] = [44, WIDTH - 12, 12, HEIGHT - 28];
const LEVELS = [0, 0.25, 0.5, 0.75, 1];
/** So many names fit below the curve. */
const NAMES_MAX = 13;

/** Which share came back so many intervals later, as a curve; a table must have the same numbers. */
export function RetentionCurve({ curves, interval, title }: RetentionCurveProps) {
  const names = useMemo(() => curves.map(({ label }) => label), [curves]);
  const hiding = useHiding(names);
  const [pointed, setPointed] = useState<number>();
  const isFaded = (index: number) => pointed !== undefined && pointed !== index;
  const last = Math.max(1, ...curves.map(({ shares }) => shares.length - 1));
  const x = (period: number) => LEFT + ((RIGHT - LEFT) * period) / last;
  const y = (share: number) => BOTTOM - (BOTTOM - TOP) * share;
  const step = Math.ceil((last + 1) / NAMES_MAX);
  const pathOf = (shares: Curve['shares']) => {
    const points = shares.flatMap((share, period) => (share === null ? [] : [`${x(period)} ${y(share)}`]));
    return points.length === 0 ? '' : `M${points.join('L')}`;
  };
  return (
    <figure class="retention-curve">
      {curves.length > 1 && (
        <Legend {...{ names, ...hiding }} label={partName('Groups of the curve', title)} onPoint={setPointed} />
      )}
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        role="img"
        aria-label={partName(`Share that came back by ${interval}`, title)}
      >
        {LEVELS.map((level) => (
          <g key={level}>
            <path class="grid" d={`M${LEFT} ${y(level)}H${RIGHT}`} />
            <text x={LEFT - 8} y={y(level) + 4} text-anchor="end">
              {formatShare(level)}
            </text>
          </g>
        ))}
        {Array.from({ length: last + 1 }, (_, period) =>
          period % step === 0 ? (
            <text key={period} x={x(period)} y={BOTTOM + 20} text-anchor="middle">
              {period === 0 ? interval : `+${period}`}
            </text>
          ) : null,
        )}
        {curves.map(({ label, shares }, index) =>
          hiding.hidden.has(index) ? null : (
            <g key={index} class={`curve color-${strokeOf(index).color}${isFaded(index) ? ' faded' : ''}`}>
              <path d={pathOf(shares)} />
              {shares.map((share, period) =>
                share === null ? null : (
                  <circle key={period} cx={x(period)} cy={y(share)} r="3">
                    <title>{`${label} +${period}: ${formatShare(share)}`}</title>
                  </circle>
                ),
              )}
            </g>
          ),
        )}
      </svg>
    </figure>
  );
}
