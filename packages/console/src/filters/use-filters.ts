import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { type Filters, filterParams, parseFilters } from './filter-params.ts';

/**
 * Shows what the parameters say.
 *
 * @param isAgain whether somebody goes on typing what the last call had the beginning of
 */
export type Apply = (params: URLSearchParams, isAgain: boolean) => void;

/** A change is applied by itself after a pause of so many milliseconds. */
const PAUSE_MS = 300;

interface FiltersOf {
  readonly form: { readonly current: HTMLFormElement | null };
  readonly params: URLSearchParams;
  /** The parameters that have a field of their own. */
  readonly names: readonly string[];
  /** Returns what is missing or wrong, as sentences. Without it nothing is applied by itself. */
  readonly missingOf: ((filters: Filters) => readonly string[]) | undefined;
  readonly onApply: Apply;
}

/** Holds what a form has: what its page shows, and what somebody has changed since. */
export function useFilters({ form, params, names, missingOf, onApply }: FiltersOf) {
  const [filters, setFilters] = useState<Filters>(() => parseFilters(params, names));
  const given = filterParams(parseFilters(params, names)).toString();
  const applied = useRef({ query: given, changed: '' });
  // At once: a later effect would take away what somebody has typed by then. What the form applied itself, it has already.
  useLayoutEffect(() => {
    if (given === applied.current.query) return;
    applied.current = { query: given, changed: '' };
    setFilters(parseFilters(params, names));
  }, [given]);
  const missing = missingOf?.(filters) ?? [];
  const apply = () => {
    const query = filterParams(filters);
    const before = new URLSearchParams(applied.current.query);
    const changed = differing(before, query).join();
    if (missing.length > 0 || (missingOf && changed === '')) return;
    const isAgain = changed === applied.current.changed && isContinued(before.get(changed), query.get(changed));
    applied.current = { query: query.toString(), changed };
    onApply(query, isAgain);
  };
  useEffect(() => {
    if (!missingOf) return undefined;
    // Effects end a moment after the form has what another address says: these changes are of the one before.
    const before = applied.current;
    const tryIt = () => {
      if (applied.current !== before) return;
      // Whoever chooses from a menu has typed the beginning of what they mean.
      if (form.current?.querySelector('[data-choosing]')) timer = setTimeout(tryIt, PAUSE_MS);
      else apply();
    };
    let timer = setTimeout(tryIt, PAUSE_MS);
    return () => clearTimeout(timer);
  }, [filters]);
  return { filters, setFilters, missing, apply };
}

/** Returns the names of the parameters that differ, in their alphabetical order. */
export function differing(one: URLSearchParams, other: URLSearchParams): string[] {
  const names = new Set([...one.keys(), ...other.keys()]);
  return [...names].filter((name) => String(one.getAll(name)) !== String(other.getAll(name))).toSorted();
}

/** Whether one text is the beginning of the other one. */
export function isContinued(one: string | null, other: string | null): boolean {
  return !!one && !!other && (one.startsWith(other) || other.startsWith(one));
}
