import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

interface RowListProps {
  readonly label: string;
  /** A table whose rows have links or buttons. */
  readonly children: ComponentChildren;
}

/**
 * A table that scrolls by itself where it is wider than the page, and is one stop of Tab: at first the link that the first row begins
 * with, later what had the focus last. Up and down go to the other rows, left and right to what else is in the row, Home and End to
 * the first and the last row.
 */
export function RowList({ label, children }: RowListProps) {
  const list = useRef<HTMLElement>(null);
  const last = useRef<HTMLElement>(null);
  const setStop = (stop: HTMLElement | undefined) => {
    for (const other of rowsIn(list.current).flatMap(stopsOf)) other.tabIndex = other === stop ? 0 : -1;
  };
  // At once, and after each change: new rows have stops of their own.
  useLayoutEffect(() => {
    const [first] = rowsIn(list.current);
    setStop(last.current && list.current?.contains(last.current) ? last.current : firstOf(first));
  });
  return (
    <section
      class="scroll"
      aria-label={label}
      ref={list}
      onFocusIn={({ target }) => {
        last.current = target as HTMLElement;
        setStop(last.current);
      }}
      onKeyDown={(event) => {
        const isCommand = event.ctrlKey || event.metaKey || event.altKey || event.shiftKey;
        const next = isCommand || event.defaultPrevented ? undefined : nextStop(list.current, event.key);
        if (!next) return;
        event.preventDefault();
        next.focus();
        next.scrollIntoView({ block: 'nearest' });
      }}
    >
      {children}
    </section>
  );
}

function rowsIn(list: Element | null): readonly HTMLElement[] {
  return [...(list?.querySelectorAll<HTMLElement>('tbody tr') ?? [])];
}

/** The link that a row begins with, or what else it has. */
function firstOf(row: Element | undefined): HTMLElement | undefined {
  return row?.querySelector<HTMLElement>('th[scope="row"] a') ?? stopsOf(row)[0];
}

function stopsOf(row: Element | undefined): readonly HTMLElement[] {
  return [...(row?.querySelectorAll<HTMLElement>('a, button') ?? [])];
}

/** Returns where a key leads from what has the focus; `undefined` where it leads nowhere. */
function nextStop(list: HTMLElement | null, key: string): HTMLElement | undefined {
  const rows = rowsIn(list);
  const focused = document.activeElement as HTMLElement | null;
  const at = rows.findIndex((row) => row.contains(focused));
  const row = rows[at];
  if (!row || !focused) return undefined;
  const place = stopsOf(row).indexOf(focused);
  /** The same column of another row, which may have nothing there. */
  const inRow = (other: HTMLElement | undefined) => {
    const cell = [...row.children].findIndex((one) => one.contains(focused));
    return other && (stopsOf(other.children[cell])[0] ?? firstOf(other));
  };
  const stops: Readonly<Record<string, HTMLElement | undefined>> = {
    ArrowDown: inRow(rows[at + 1]),
    ArrowUp: inRow(rows[at - 1]),
    ArrowRight: stopsOf(row)[place + 1],
    ArrowLeft: stopsOf(row)[place - 1],
    Home: inRow(rows[0]),
    End: inRow(rows.at(-1)),
  };
  return stops[key];
}
