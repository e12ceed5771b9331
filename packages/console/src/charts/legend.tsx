import { useMemo, useState } from 'preact/hooks';

/** A chart has ten groups unless the address says otherwise, and a line for all others. */
const COLORS = 11;

/** Lines that share a color differ in their dashes. The style sheet has the same for legends. */
export const DASHES = [[], [8, 4], [2, 3]] as const;

/** Returns the numbers of a line's color and dashes. The style sheet has the colors. */
export function strokeOf(index: number): { readonly color: number; readonly dash: number } {
  return { color: index % COLORS, dash: Math.floor(index / COLORS) % DASHES.length };
}

/** Which of the things that a drawing names are not drawn. */
export interface Hiding {
  /** By index. */
  readonly hidden: ReadonlySet<number>;
  /** Hides what has a name, or shows it again. */
  readonly toggle: (name: string) => void;
}

/** Remembers what is hidden by its name: numbers that are read again are other lines. */
export function useHiding(names: readonly string[]): Hiding {
  const [hiddenNames, setHiddenNames] = useState<readonly string[]>([]);
  const hidden = useMemo(
    () => new Set(names.flatMap((name, index) => (hiddenNames.includes(name) ? [index] : []))),
    [names, hiddenNames],
  );
  return {
    hidden,
    toggle: (name) =>
      setHiddenNames(hiddenNames.includes(name) ? hiddenNames.filter((one) => one !== name) : [...hiddenNames, name]),
  };
}

interface LegendProps extends Hiding {
  readonly names: readonly string[];
  /** What they are names of, such as `Lines of the chart`. */
  readonly label: string;
  /** Somebody points at a name, by its index, or at none any more. */
  readonly onPoint: (index: number | undefined) => void;
}

/** What of a drawing is which. Pointing at a name fades the others, a click hides what it names. */
export function Legend({ names, label, hidden, toggle, onPoint }: LegendProps) {
  return (
    <ul class="legend" aria-label={label}>
      {names.map((name, index) => (
        <li key={index}>
          <button
            type="button"
            class="quiet"
            aria-pressed={!hidden.has(index)}
            title={hidden.has(index) ? 'Show it' : 'Hide it'}
            onClick={() => toggle(name)}
            onPointerEnter={() => onPoint(index)}
            onPointerLeave={() => onPoint(undefined)}
            onFocus={() => onPoint(index)}
            onBlur={() => onPoint(undefined)}
          >
            <Swatch index={index} />
            <bdi>{name}</bdi>
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
