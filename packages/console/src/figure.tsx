import type { ComponentChildren } from 'preact';

interface FigureProps {
  readonly term: string;
  readonly value: string;
  readonly children?: ComponentChildren;
}

/** A figure with its name and what it means, in a list of figures. */
export function Figure({ term, value, children }: FigureProps) {
  return (
    <div>
      <dt>{term}</dt>
      <dd class="figure">{value}</dd>
      <dd class="muted">{children}</dd>
    </div>
  );
}
