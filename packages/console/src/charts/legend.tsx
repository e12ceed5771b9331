import { formatNumber } from '../base/base.ts';
import type { Line } from './series.ts';

/** A chart has ten groups unless the address says otherwise, and a line for all others. */
const COLORS = 11;

/** Lines that share a color differ in their dashes. The style sheet has the same for legends. */
export const DASHES = [[], [8, 4], [2, 3]] as const;

/** Returns the numbers of a line's color and dashes. The style sheet has the colors. */
export function strokeOf(index: number): { readonly color: number; readonly dash: number } {
  return { color: index % COLORS, dash: Math.floor(index / COLORS) % DASHES.length };
}

/** Which line of a chart is which, each with its total if it has one. */
export function Legend({ lines }: { readonly lines: readonly Line[] }) {
  return (
    <ul class="legend">
      {lines.map(({ label, total }, index) => (
        <li key={index}>
          <Swatch index={index} />
          <bdi>{label}</bdi> {total !== null && formatNumber(total)}
        </li>
      ))}
    </ul>
  );
}

/** The color and the dashes of a line. */
export function Swatch({ index }: { readonly index: number }) {
  const { color, dash } = strokeOf(index);
  return <span class={`swatch color-${color} dash-${dash}`} />;
}
