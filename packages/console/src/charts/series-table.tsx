import { useState } from 'preact/hooks';
import { formatBucket, formatNumber } from '../base/base.ts';
import { NumberLink, Scrollable } from '../parts/parts.ts';
import type { Line } from './series.ts';

interface SeriesTableProps {
  /** When each bucket begins. */
  readonly buckets: readonly string[];
  readonly interval: string;
  readonly timeZone: string;
  readonly lines: readonly Line[];
  /** The buckets that are only partly in the range. Default: none. */
  readonly partial?: ReadonlySet<string>;
  /** What names it for those who do not see it. Default: all numbers. */
  readonly label?: string;
  /** Returns the address of what is behind a number; `undefined` where there is none. Default: there is none. */
  readonly hrefOf?: (bucket: number, line: number) => string | undefined;
}

/** A browser lays out so many cells at once; more buckets are shown one part after the other. */
const CELLS_MAX = 5_000;

/** All numbers of a chart, to be opened. */
export function SeriesTable(props: SeriesTableProps) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <details onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}>
      <summary>All numbers</summary>
      {isOpen && <Numbers {...props} />}
    </details>
  );
}

function Numbers({ buckets, interval, timeZone, lines, partial, label = 'All numbers', hrefOf }: SeriesTableProps) {
  const [chosen, setFrom] = useState(0);
  const rowsMax = Math.ceil(CELLS_MAX / (lines.length + 1));
  const from = chosen < buckets.length ? chosen : 0;
  const shown = buckets.slice(from, from + rowsMax);
  return (
    <>
      {buckets.length > rowsMax && (
        <div class="bar">
          <p role="status">
            {formatNumber(from + 1)} to {formatNumber(from + shown.length)} of {formatNumber(buckets.length)}
          </p>
          <button type="button" disabled={from === 0} onClick={() => setFrom(Math.max(0, from - rowsMax))}>
            Earlier
          </button>
          <button type="button" disabled={from + rowsMax >= buckets.length} onClick={() => setFrom(from + rowsMax)}>
            Later
          </button>
        </div>
      )}
      <Scrollable label={label}>
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
            {shown.map((bucket, row) => (
              <tr key={bucket}>
                <th scope="row">
                  <time dateTime={bucket}>{formatBucket(bucket, interval, timeZone)}</time>
                  {partial?.has(bucket) && ' (partial)'}
                </th>
                {lines.map(({ values }, index) => (
                  <td key={index} class="number">
                    <NumberLink value={values[from + row] ?? null} href={hrefOf?.(from + row, index)} />
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </Scrollable>
    </>
  );
}
