import { useState } from 'preact/hooks';
import { hrefOf, without } from '../base/base.ts';
import type { Loaded } from './load.tsx';

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

/** How many entries a page inside another one has. */
const LIMIT = 12;

/** The pages of a list inside a page, of which the address of that says nothing. */
export function usePages() {
  /** The cursors of the pages up to this one. */
  const [cursors, setCursors] = useState<readonly string[]>([]);
  const cursor = cursors.at(-1);
  const params = new URLSearchParams({ limit: String(LIMIT), ...(cursor !== undefined && { cursor }) });
  return { params, cursors, setCursors };
}

interface PageButtonsProps {
  readonly pages: ReturnType<typeof usePages>;
  readonly loaded: Loaded<{ readonly nextCursor: string | null }>;
  /** What the pages are of, in the plural. */
  readonly noun: string;
}

/** Buttons for the previous and the next of some pages; nothing where there is one page. */
export function PageButtons({ pages: { cursors, setCursors }, loaded: { data, isLoading }, noun }: PageButtonsProps) {
  const next = data?.nextCursor ?? null;
  if (cursors.length === 0 && next === null) return null;
  return (
    <div class="bar">
      <button
        type="button"
        disabled={cursors.length === 0 || isLoading}
        onClick={() => setCursors(cursors.slice(0, -1))}
      >
        Previous {noun}
      </button>
      <button type="button" disabled={next === null || isLoading} onClick={() => setCursors([...cursors, next ?? ''])}>
        Next {noun}
      </button>
    </div>
  );
}
