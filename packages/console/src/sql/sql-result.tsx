import { formatCount, formatExact, isNumber } from '../base/base.ts';
import { SeriesChart, SeriesTable } from '../charts/charts.ts';
import { beginningOf, Scrollable, Time } from '../parts/parts.ts';
import type { Rows } from './rows.ts';
import { type BarChart, chartOf } from './sql-chart.ts';

interface SqlTileProps extends Rows {
  /** When it was read, which is what a statement has in place of a range. */
  readonly readAt: string;
}

/** A result as a tile shows it: when it was read, and one number large, a chart where it is one, otherwise the rows. */
export function SqlTile({ readAt, ...result }: SqlTileProps) {
  return (
    <>
      <div class="tile-head">
        <p class="muted">
          Read <Time value={readAt} />
        </p>
        {!result.isWhole && <p class="muted">{summaryOf(result)}</p>}
      </div>
      <TileResult {...result} />
    </>
  );
}

function TileResult(result: Rows) {
  const { columns, rows } = result;
  const [column = ''] = columns;
  const only = rows.length === 1 && columns.length === 1 ? rows[0]?.[column] : undefined;
  if (isNumber(only)) return <p class="figure">{textOf(only)}</p>;
  if (rows.length === 0) return <p class="muted">No rows.</p>;
  // A part of a chart would look like the whole.
  const chart = result.isWhole ? chartOf(result) : undefined;
  if (chart) return <SqlDrawing chart={chart} />;
  return <ResultTable {...result} />;
}

/** Returns how many rows there are, or are shown of more. */
export function summaryOf({ rows, isWhole }: Rows): string {
  const count = formatCount(rows.length, 'row');
  return isWhole ? `${count}.` : `The first ${count}.`;
}

/** Draws a result that is a chart. */
export function SqlDrawing({ chart }: { readonly chart: NonNullable<ReturnType<typeof chartOf>> }) {
  if (chart.kind === 'bars') return <Bars {...chart} />;
  const { kind: _, ...series } = chart;
  const props = { ...series, timeZone: 'UTC' };
  return (
    <SeriesChart {...props} label="The result over time, in UTC">
      <SeriesTable {...props} />
    </SeriesChart>
  );
}

function Bars({ number, bars }: BarChart) {
  const most = Math.max(...bars.map(({ value }) => value)) || 1;
  return (
    <Scrollable label="Chart of the result">
      <table class="result-bars">
        <caption>{number}</caption>
        <tbody>
          {bars.map(({ label, value, shown }, index) => (
            <tr key={index}>
              <th scope="row">
                <bdi>{beginningOf(label)}</bdi>
              </th>
              <td>
                <svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">
                  <rect class="color-0" width={(100 * value) / most} height="10" />
                </svg>
              </td>
              <td class="number">{formatExact(JSON.stringify(shown))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scrollable>
  );
}

/** The rows of a result. */
export function ResultTable({ columns, rows }: Rows) {
  return (
    <Scrollable label="Result">
      <table class="numbers result">
        <caption>Result</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column} scope="col" class={classOf(rows[0]?.[column])}>
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {columns.map((column) => (
                <td key={column} class={classOf(row[column])}>
                  {textOf(row[column])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </Scrollable>
  );
}

function classOf(value: unknown): string | undefined {
  return isNumber(value) ? 'number' : undefined;
}

function textOf(value: unknown): string {
  if (isNumber(value)) return formatExact(JSON.stringify(value));
  return beginningOf(typeof value === 'string' ? value : JSON.stringify(value));
}
