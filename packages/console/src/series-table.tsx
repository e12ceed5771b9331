import { formatBucket, formatNumber } from './format.ts';
import type { Line } from './series.ts';

interface SeriesTableProps {
  /** When each bucket begins. */
  readonly buckets: readonly string[];
  readonly interval: string;
  readonly timeZone: string;
  readonly lines: readonly Line[];
}

/** All numbers of a chart, to be opened. */
export function SeriesTable({ buckets, interval, timeZone, lines }: SeriesTableProps) {
  return (
    <details>
      <summary>All numbers</summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <section class="scroll" aria-label="All numbers" tabIndex={0}>
        <table class="numbers">
          <caption>Every {interval} of the chart</caption>
          <thead>
            <tr>
              <th scope="col">Begins</th>
              {lines.map(({ label }, index) => (
                <th key={index} scope="col" class="number">
                  {label}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {buckets.map((bucket, row) => (
              <tr key={bucket}>
                <th scope="row">
                  <time dateTime={bucket}>{formatBucket(bucket, interval, timeZone)}</time>
                </th>
                {lines.map(({ values }, index) => (
                  <td key={index} class="number">
                    {formatNumber(values[row] ?? null)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </details>
  );
}
