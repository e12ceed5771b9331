import { formatChange, formatNumber } from '../base/base.ts';
import type { Line } from '../charts/charts.ts';
import { Figure } from '../parts/parts.ts';

interface ChartNumbersProps {
  readonly lines: readonly Line[];
  readonly total: number | null;
  /** The total of the time before; `null` if none was asked for. */
  readonly previous: number | null;
}

/** The total of a chart, and that of each group, as large numbers. */
export function ChartNumbers({ lines, total, previous }: ChartNumbersProps) {
  const figures = lines.map((line) => ({ ...line, before: line.previous?.total ?? null }));
  const isGrouped = lines.length > 1 || lines[0]?.group?.length !== 0;
  const all = isGrouped ? [{ label: 'Total', total, before: previous }, ...figures] : figures;
  return (
    <dl class="figures">
      {all.map(({ label, total, before }, index) => (
        <Figure key={index} term={label} value={formatNumber(total)}>
          {before !== null && `${formatChange(total, before)}, before: ${formatNumber(before)}`}
        </Figure>
      ))}
    </dl>
  );
}
