import { formatNumber } from './base/base.ts';
import type { Line } from './series.ts';
import { strokeOf } from './stroke.ts';

/** Which line of a chart is which, each with its total if it has one. */
export function Legend({ lines }: { readonly lines: readonly Line[] }) {
  return (
    <ul class="legend">
      {lines.map(({ label, total }, index) => {
        const { color, dash } = strokeOf(index);
        return (
          <li key={index}>
            <span class={`swatch color-${color} dash-${dash}`} />
            <bdi>{label}</bdi> {total !== null && formatNumber(total)}
          </li>
        );
      })}
    </ul>
  );
}
