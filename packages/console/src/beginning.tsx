import { useMemo } from 'preact/hooks';
import { hrefOf } from './base/base.ts';

interface EntityLinkProps {
  readonly path: 'users' | 'organizations';
  readonly id: string;
}

/** The identifier of a user or an organization, in the direction of its own script, which leads to its page. */
export function EntityLink({ path, id }: EntityLinkProps) {
  return (
    <a href={hrefOf([path, id])}>
      <bdi>{id}</bdi>
    </a>
  );
}

/** The beginning of a value as JSON. */
export function Beginning({ value }: { readonly value: unknown }) {
  return <>{useMemo(() => beginningOf(JSON.stringify(value)), [value])}</>;
}

/** How much of a value a cell shows, in characters. */
const SHOWN_MAX = 1_000;

/** Returns a text, or the beginning of a long one. */
export function beginningOf(text: string): string {
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)} …` : text;
}
