import { hrefOf, without } from '../base/base.ts';

interface PagesProps {
  /** Of the list, in the address: `events`. */
  readonly path: string;
  /** What the pages are of. */
  readonly label: string;
  readonly params: URLSearchParams;
  /** Of the response; null on the last page. */
  readonly nextCursor: string | null;
}

/** Links to the first and the next page of a list. */
export function Pages({ path, label, params, nextCursor }: PagesProps) {
  const first = without(params, 'cursor', 'offset');
  return (
    <nav class="bar" aria-label={label}>
      {params.has('cursor') && <a href={hrefOf([path], first)}>First page</a>}
      {nextCursor !== null && (
        <a href={hrefOf([path], new URLSearchParams([...first, ['cursor', nextCursor]]))}>Next page</a>
      )}
    </nav>
  );
}
