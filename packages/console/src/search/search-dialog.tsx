import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Suggestions, useSuggestions } from '../filters/filters.ts';
import { entriesOfPages, entriesWith, type SearchEntry, savedEntries, storedEntries } from './entries.ts';

interface SearchDialogProps {
  /** The pages of the console, by their names in addresses and their titles. */
  readonly pages: readonly (readonly [name: string, title: string])[];
  /** What can be done from anywhere. */
  readonly actions: readonly SearchEntry[];
  readonly onClose: () => void;
}

/**
 * Finds pages, actions and what is saved at once, and users, organizations and events as query-api finds them. The arrows choose,
 * Enter opens what is chosen, at first the first one, and Escape closes it. Enter before query-api has answered waits for it.
 */
export function SearchDialog({ pages, actions, onClose }: SearchDialogProps) {
  const id = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState('');
  const [active, setActive] = useState(0);
  /** Whether Enter was pressed while there was nothing to open. */
  const [isAwaited, setIsAwaited] = useState(false);
  const saved = useSaved();
  const stored = useSuggestions(text, storedEntries);
  const isSearching = stored.text !== text;
  const entries = useMemo(() => {
    const local = entriesWith(text, [...entriesOfPages(pages), ...actions, ...saved]);
    return isSearching ? local : [...local, ...stored.suggestions];
  }, [text, pages, actions, saved, stored]);
  // At once: what somebody types next is what is sought.
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const open = (entry: SearchEntry | undefined) => {
    if (!entry) return;
    dialog.current?.close();
    entry.run();
  };
  useEffect(() => {
    if (isAwaited && !isSearching) open(entries[0]);
  }, [isAwaited, isSearching]);
  const step = (by: 1 | -1) => setActive((active + by + entries.length) % Math.max(1, entries.length));
  const keys: Readonly<Record<string, () => void>> = {
    ArrowDown: () => step(1),
    ArrowUp: () => step(-1),
    Enter: () => (entries[active] ? open(entries[active]) : setIsAwaited(true)),
  };
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape does the same
    <dialog
      ref={dialog}
      class="search"
      aria-label="Search"
      onClose={onClose}
      // A click on the dialog itself is one beside its content.
      onClick={({ target, currentTarget }) => target === currentTarget && dialog.current?.close()}
    >
      <div>
        <input
          role="combobox"
          aria-label="Search for users, organizations, events, pages"
          placeholder="A name, an e-mail address, an identifier, a page …"
          autocomplete="off"
          spellcheck={false}
          aria-autocomplete="list"
          aria-expanded={entries.length > 0}
          aria-controls={entries.length > 0 ? `${id}-list` : undefined}
          aria-activedescendant={entries.length > 0 ? `${id}-${active}` : undefined}
          value={text}
          onInput={({ currentTarget }) => {
            setText(currentTarget.value);
            setActive(0);
            setIsAwaited(false);
          }}
          onKeyDown={(event) => {
            const act = keys[event.key];
            if (!act || event.isComposing) return;
            event.preventDefault();
            act();
          }}
        />
        {entries.length > 0 && (
          <Suggestions id={id} label="the search" suggestions={entries} active={active} onTake={open} />
        )}
        <p role="status" class="muted">
          {isSearching ? 'Searching …' : textOfCount(entries.length, stored.hasFailed)}
        </p>
      </div>
    </dialog>
  );
}

function textOfCount(count: number, hasFailed: boolean): string {
  if (hasFailed) return 'Users, organizations and events cannot be searched now.';
  return count === 0 ? 'Nothing is found.' : `${count} shown.`;
}

/** Loads what is saved when the dialog opens. */
function useSaved(): readonly SearchEntry[] {
  const [saved, setSaved] = useState<readonly SearchEntry[]>([]);
  useEffect(() => {
    const controller = new AbortController();
    void savedEntries(controller.signal).then((found) => controller.signal.aborted || setSaved(found));
    return () => controller.abort();
  }, []);
  return saved;
}
