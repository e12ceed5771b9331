import { formatNumber } from './base/base.ts';

interface NumberLinkProps {
  readonly value: number | null;
  /** What is shown in its place. */
  readonly text?: string;
  /** Where what it counts is shown. */
  readonly href: string | undefined;
  /** What is shown there. */
  readonly opens?: string;
}

/** A number that opens what it counts. Nothing is behind a zero. */
export function NumberLink({ value, text = formatNumber(value), href, opens = 'events' }: NumberLinkProps) {
  if (value === null || value === 0 || href === undefined) return <>{text}</>;
  return (
    <a class="number-link" href={href} title={`${formatNumber(value)}: open the ${opens}`}>
      {text}
    </a>
  );
}
