import { formatBucket, formatNumber } from '../base/base.ts';
import { strokeOf } from './legend.tsx';
import type { Line } from './series.ts';

interface SmallChartsProps {
  readonly buckets: readonly string[];
  readonly interval: string;
  readonly timeZone: string;
  readonly lines: readonly Line[];
  readonly label: string;
}

/** A small chart of bars for each line, all with one scale; a table must have the same numbers. */
export function SmallCharts({ buckets, interval, timeZone, lines, label }: SmallChartsProps) {
  const values = lines.flatMap((line) => line.values.map((value) => value ?? 0));
  const [lowest, highest] = [Math.min(0, ...values), Math.max(0, ...values)];
  const heightOf = (value: number) => (100 * Math.abs(value)) / (highest - lowest || 1);
  const topOf = (value: number) => (100 * (highest - Math.max(0, value))) / (highest - lowest || 1);
  return (
    <div class="small-charts" role="img" aria-label={label}>
      {lines.map((line, index) => (
        <figure key={index}>
          <figcaption>
            <bdi>{line.label}</bdi> <span class="muted">{formatNumber(line.total)}</span>
          </figcaption>
          <svg
            viewBox={`0 0 ${buckets.length} 100`}
            preserveAspectRatio="none"
            aria-hidden="true"
            class={`color-${strokeOf(index).color}`}
          >
            {line.values.map((value, bucket) =>
              value === null ? null : (
                <rect key={bucket} x={bucket + 0.08} y={topOf(value)} width="0.84" height={heightOf(value)}>
                  <title>{`${formatBucket(buckets[bucket] ?? '', interval, timeZone)}: ${formatNumber(value)}`}</title>
                </rect>
              ),
            )}
          </svg>
        </figure>
      ))}
    </div>
  );
}
