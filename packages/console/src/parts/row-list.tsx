import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

interface RowListProps {
  readonly label: string;
  /** A table whose rows have links, buttons or forms. */
  readonly children: ComponentChildren;
}

/**
 * A table that scrolls by itself where it is wider than the page, and is one stop of Tab: at first the link that the first row begins
 * with, later the one that had the focus last. The buttons and fields of its row are stops as well, those of other rows are not. Up
 * and down go to the other rows, left and right to what else is in the row, Home and End to the first and the last row. When the row
 * that has the focus is gone, the one in its place gets it.
 */
export function RowList({ label, children }: RowListProps) {
  const list = useRef<HTMLElement>(null);
  const last = useRef<HTMLElement>(null);
  const lastRow = useRef<Element>(null);
  const setStops = () => {
    const rows = rowsIn(list.current);
    const current = rows.find((row) => row === lastRow.current) ?? rows[0];
    const isLink = last.current?.matches('a') && current?.contains(last.current);
    const link = isLink ? last.current : startOfRow(current);
    for (const row of rows) {
      for (const control of controlsOf(row)) {
        const isStop = control === link || (row === current && !control.matches('a'));
        control.tabIndex = isStop ? 0 : -1;
      }
    }
    // What scrolls must be reached by keyboard.
    if (current) list.current?.removeAttribute('tabindex');
    else list.current?.setAttribute('tabindex', '0');
  };
  const focused = rowsIn(list.current).findIndex((row) => row.contains(document.activeElement));
  // At once, and after each change: new rows have stops of their own.
  useLayoutEffect(() => {
    setStops();
    if (focused < 0 || document.activeElement !== document.body) return;
    const rows = rowsIn(list.current);
    startOfRow(rows[focused] ?? rows.at(-1))?.focus();
  });
  return (
    <section
      class="scroll rows"
      aria-label={label}
      ref={list}
      onFocusIn={({ target }) => {
        last.current = target as HTMLElement;
        lastRow.current = last.current.closest('tr');
        setStops();
      }}
      onKeyDown={(event) => {
        const { key, shiftKey } = event;
        const next = shiftKey || isForSomebodyElse(event) ? undefined : nextStop(list.current, key);
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

interface DocumentTableProps {
  /** What it lists, such as `Views`. */
  readonly label: string;
  /** Default: who sees them. */
  readonly caption?: ComponentChildren;
  /** The titles of the columns. One that is not shown is `false`. */
  readonly columns: readonly (string | false)[];
  /** The column that has numbers. Default: none. */
  readonly numbers?: string;
  /** A row for each document. */
  readonly children: ComponentChildren;
}

/** A table of what is kept for a workspace. A phone shows a row in two lines: first its name and its time. */
export function DocumentTable({ label, caption, columns, numbers, children }: DocumentTableProps) {
  return (
    <RowList label={label}>
      <table class="documents">
        <caption>{caption ?? 'Everybody of the workspace sees them'}</caption>
        <thead>
          <tr>
            {columns.map(
              (column) =>
                column !== false && (
                  <th key={column} scope="col" class={column === numbers ? 'number' : undefined}>
                    {column}
                  </th>
                ),
            )}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </RowList>
  );
}

/** Whether a key is text for a field, a command of the browser, or for a dialog that is open. */
export function isForSomebodyElse({ target, ctrlKey, altKey, metaKey, defaultPrevented }: KeyboardEvent): boolean {
  if (ctrlKey || altKey || metaKey || defaultPrevented) return true;
  if (document.querySelector('dialog[open]')) return true;
  return target instanceof HTMLElement && target.closest('input, select, textarea, [contenteditable]') !== null;
}

/** The rows of a list that have something to go to. */
function rowsIn(list: Element | null): readonly HTMLElement[] {
  return [...(list?.querySelectorAll<HTMLElement>('tbody tr') ?? [])].filter(startOfRow);
}

/** The link that a row begins with, or what else it has. */
export function startOfRow(row: Element | undefined): HTMLElement | undefined {
  return row?.querySelector<HTMLElement>('th[scope="row"] a') ?? controlsOf(row)[0];
}

function controlsOf(row: Element | undefined): readonly HTMLElement[] {
  return [...(row?.querySelectorAll<HTMLElement>('a, button, input, select, textarea') ?? [])];
}

/** Returns where a key leads from what has the focus; `undefined` where it leads nowhere. */
function nextStop(list: HTMLElement | null, key: string): HTMLElement | undefined {
  const rows = rowsIn(list);
  const focused = document.activeElement as HTMLElement | null;
  const at = rows.findIndex((row) => row.contains(focused));
  const row = rows[at];
  if (!row || !focused) return undefined;
  const place = controlsOf(row).indexOf(focused);
  /** The same column of another row, which may have nothing there. */
  const inRow = (other: HTMLElement | undefined) => {
    const cell = [...row.children].findIndex((one) => one.contains(focused));
    return other && (controlsOf(other.children[cell])[0] ?? startOfRow(other));
  };
  const stops: Readonly<Record<string, HTMLElement | undefined>> = {
    ArrowDown: inRow(rows[at + 1]),
    ArrowUp: inRow(rows[at - 1]),
    ArrowRight: controlsOf(row)[place + 1],
    ArrowLeft: controlsOf(row)[place - 1],
    Home: inRow(rows[0]),
    End: inRow(rows.at(-1)),
  };
  return stops[key];
}
