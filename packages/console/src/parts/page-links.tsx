import { hrefOf, without } from '../base/base.ts';

interface PageLinksProps {
  /** The path of the list in the address, such as `events`. */
  readonly path: string;
  /** What the pages are of. */
  readonly label: string;
  readonly params: URLSearchParams;
  /** The cursor of the response; null on the last page. */
  readonly nextCursor: string | null;
}

/** Links to the first and the next page of a list. */
export function PageLinks({ path, label, params, nextCursor }: PageLinksProps) {
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
