import { useEffect, useRef, useState } from 'preact/hooks';
import { formatBucket, formatNumber } from './format.ts';
import type { Plot } from './plot.ts';
import type { Line } from './series.ts';

interface SeriesChartProps {
  /** When each bucket begins. */
  readonly buckets: readonly string[];
  readonly interval: string;
  readonly timeZone: string;
  readonly lines: readonly Line[];
  /** The buckets that are only partly in the range. Default: none. */
  readonly partial?: ReadonlySet<string>;
  /** What it shows, for those who do not see it. */
  readonly label: string;
}

/** Draws lines. A table must have the same numbers: this is a picture. */
export function SeriesChart({ buckets, interval, timeZone, lines, partial, label }: SeriesChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const [pointed, setPointed] = useState<number | null>(null);
  const [isMissing, setIsMissing] = useState(false);
  useEffect(() => {
    const element = place.current;
    if (!element) return;
    setPointed(null);
    let isGone = false;
    let plot: Plot | undefined;
    // Loaded with the first chart: it is as large as the rest of the console.
    void import('./plot.ts').then(
      ({ drawPlot }) => {
        if (!isGone) plot = drawPlot(element, { buckets, interval, timeZone, lines }, setPointed);
      },
      // Another version was installed meanwhile, or query-api is away.
      () => setIsMissing(true),
    );
    return () => {
      isGone = true;
      plot?.remove();
    };
  }, [buckets, lines, interval, timeZone]);
  const bucket = pointed === null ? undefined : buckets[pointed];
  return (
    <figure>
      <div class="chart" role="img" aria-label={label} ref={place} />
      <figcaption>
        {isMissing && 'The chart could not be loaded: load the page again. '}
        {bucket === undefined || pointed === null
          ? 'Point at the chart to read a time; the table below has all numbers.'
          : `${formatBucket(bucket, interval, timeZone)}${partial?.has(bucket) ? ' (partial)' : ''}: ${lines.map((line) => `${line.label} ${formatNumber(line.values[pointed] ?? null)}`).join(', ')}`}
      </figcaption>
    </figure>
  );
}
