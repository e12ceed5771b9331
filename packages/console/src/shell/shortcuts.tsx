import { useLayoutEffect, useRef } from 'preact/hooks';
import { hrefOf, settings } from '../base/base.ts';
import { isForSomebodyElse, startOfRow } from '../parts/parts.ts';

/** The pages that `g` and another key open. */
const PAGES: Readonly<Record<string, readonly [name: string, title: string]>> = {
  h: ['home', 'Home'],
  e: ['events', 'Events'],
  x: ['explore', 'Explore'],
  d: ['dashboards', 'Dashboards'],
  v: ['views', 'Views'],
  u: ['users', 'Users'],
  o: ['organizations', 'Organizations'],
  m: ['segments', 'Segments'],
  s: ['sql', 'SQL'],
  w: ['webhooks', 'Webhooks'],
  k: ['keys', 'Keys'],
  l: ['dead-letters', 'Dead letters'],
  p: ['pipeline', 'Pipeline'],
};

/** How long after `g` another key belongs to it. */
const SEQUENCE_MS = 2_000;

/** Opens pages by keys, and lists these keys after `?`. */
export function Shortcuts({ onSearch }: { readonly onSearch: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  // At once: a key that is pressed before a later effect would get lost.
  useLayoutEffect(() => {
    let lastPage = Number.NEGATIVE_INFINITY;
    const onKeyDown = (event: KeyboardEvent) => {
      if (isSearch(event)) {
        event.preventDefault();
        onSearch();
        return;
      }
      if (!settings.value.shortcuts || isForSomebodyElse(event)) return;
      const page = event.timeStamp - lastPage <= SEQUENCE_MS ? PAGES[event.key] : undefined;
      lastPage = event.key === 'g' ? event.timeStamp : Number.NEGATIVE_INFINITY;
      if (page) location.hash = hrefOf([page[0]]);
      else if (event.key === '?') dialog.current?.showModal();
      else if (event.key === 'j' || event.key === 'k') moveRow(event.key === 'j' ? 1 : -1);
      else if (event.key === '/') onSearch();
      else return;
      event.preventDefault();
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, []);
  return (
    <dialog ref={dialog} aria-labelledby="shortcuts-title" class="shortcuts">
      <h2 id="shortcuts-title">Keys</h2>
      <dl>
        <Keys keys={['?']} meaning="These keys" />
        <Keys keys={['/', 'Ctrl K']} meaning="Search" />
        <Keys keys={['j', 'k']} meaning="The next or the previous row" />
        {Object.entries(PAGES).map(([key, [, title]]) => (
          <Keys key={key} keys={['g', key]} meaning={title} />
        ))}
      </dl>
      <p>
        <a href={hrefOf(['settings'])} onClick={() => dialog.current?.close()}>
          Turn these keys off
        </a>
      </p>
      <form method="dialog">
        <button type="submit" class="primary">
          Close
        </button>
      </form>
    </dialog>
  );
}

function Keys({ keys, meaning }: { readonly keys: readonly string[]; readonly meaning: string }) {
  return (
    <div>
      <dt>
        {keys.map((key, index) => (
          <>
            {index > 0 && ' '}
            <kbd>{key}</kbd>
          </>
        ))}
      </dt>
      <dd>{meaning}</dd>
    </div>
  );
}

/** The rows that `j` and `k` go to: all of a list, and others that begin with a link. */
const ROWS = 'main .rows tbody tr, main tbody tr:has(> th[scope="row"] a)';

/** Puts the focus on what a row begins with: the next row or the one before, at first the first row. */
function moveRow(by: 1 | -1): void {
  const starts = [...document.querySelectorAll(ROWS)].flatMap((row) => startOfRow(row) ?? []);
  const current = document.activeElement?.closest('tr');
  const at = current ? starts.findIndex((start) => current.contains(start)) : -1;
  const next = at < 0 ? starts[0] : starts[at + by];
  next?.focus();
  next?.scrollIntoView({ block: 'nearest' });
}

/** Whether keys are those of the search, which open it from a field as well. */
function isSearch({ key, ctrlKey, metaKey, altKey, shiftKey }: KeyboardEvent): boolean {
  if (altKey || shiftKey || ctrlKey === metaKey || key.toLowerCase() !== 'k') return false;
  return document.querySelector('dialog[open]') === null;
}
