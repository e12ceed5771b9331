import type { Line } from './series.ts';

/** A chart has ten groups unless the address says otherwise, and a line for all others. */
const COLORS = 11;

/** Lines that share a color differ in their dashes. The style sheet has the same for legends. */
export const DASHES = [[], [8, 4], [2, 3]] as const;

/** Returns the numbers of a line's color and dashes. The style sheet has the colors. */
export function strokeOf(index: number): { readonly color: number; readonly dash: number } {
  return { color: index % COLORS, dash: Math.floor(index / COLORS) % DASHES.length };
}

interface LegendProps {
  readonly lines: readonly Line[];
  /** The lines that are not drawn, by index. */
  readonly hidden: ReadonlySet<number>;
  /** Hides the lines of a name, or shows them again. */
  readonly onToggle: (name: string) => void;
  /** Somebody points at the name of a line, or at none any more. */
  readonly onPoint: (index: number | undefined) => void;
}

/** Which line of a chart is which. Pointing at a name fades the other lines, a click hides its own. */
export function Legend({ lines, hidden, onToggle, onPoint }: LegendProps) {
  return (
    <ul class="legend" aria-label="Lines of the chart">
      {lines.map(({ label }, index) => (
        <li key={index}>
          <button
            type="button"
            class="quiet"
            aria-pressed={!hidden.has(index)}
            title={hidden.has(index) ? 'Show this line' : 'Hide this line'}
            onClick={() => onToggle(label)}
            onPointerEnter={() => onPoint(index)}
            onPointerLeave={() => onPoint(undefined)}
            onFocus={() => onPoint(index)}
            onBlur={() => onPoint(undefined)}
          >
            <Swatch index={index} />
            <bdi>{label}</bdi>
          </button>
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
