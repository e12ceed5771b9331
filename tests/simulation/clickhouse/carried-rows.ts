import type { ChangeRow } from '@sluice/shared/rows';
import { NUMBERED_ROWS } from '@sluice/writer/batch/staging-tables';
import { STATEMENTS } from '@sluice/writer/batch/statements';
import type { Session } from './statements.ts';
import type { StagedEvent, StoredEvent } from './tables.ts';

/** A table that was sent with a statement. */
export interface SentTable {
  readonly name: string;
  readonly bytes: Buffer;
}

interface Filled {
  readonly name: string;
  readonly columns: readonly string[];
}

/** The tables that statements fill, by the names of these. */
const FILLED: ReadonlyMap<string, Filled> = new Map(
  [...Object.values(STATEMENTS), ...Object.values(NUMBERED_ROWS).flatMap(({ load }) => [load])].flatMap((statement) => {
    const step = 'step' in statement ? statement.step : undefined;
    if (!step || step.does === 'store' || step.does === 'create') return [];
    const { name, columns } = step.table;
    return [[statement.name, { name, columns: Object.keys(columns) }] as const];
  }),
);

/** Those that create their table in a session. */
const CREATING = new Set(['find-deletions', 'find-repeats']);

/** Returns the table whose rows a statement returns; undefined for one that fills none. */
function filledBy(statement: string): Filled | undefined {
  return FILLED.get(statement.replace('-skipping', ''));
}

/**
 * Rows that travel from a simulated server to a writer and back, in blocks of the format Native. What is in a block is known here alone: its values
 * are the number of the rows that it stands for.
 */
export class CarriedRows {
  readonly #rows: (readonly unknown[])[] = [];

  /** Returns the rows of the table that a statement fills, as it returns them; undefined for one that fills none. */
  blocksOf(statement: string, session: Session): Buffer | undefined {
    const filled = filledBy(statement);
    if (!filled) return undefined;
    const rows = rowsIn(session, filled.name);
    if (rows.length === 0) return Buffer.alloc(0);
    this.#rows.push(rows);
    return blockOf(filled.columns, rows.length, String(this.#rows.length - 1));
  }

  /** Returns what is in the tables that were sent with a statement. */
  sessionOf(statement: string, tables: readonly SentTable[]): Session {
    const session: Session = { isCarried: true };
    const filled = filledBy(statement);
    for (const { name, bytes } of tables) {
      // What is sent of a table that the statement fills from others is not read.
      const isRead = name !== 'sent_rows' && !(CREATING.has(statement) && name === filled?.name);
      if (isRead) put(session, name, this.#read(bytes));
    }
    // What is loaded, and what is found among stored rows, is added to what the writer has.
    const isLoaded = tables.some(({ name }) => name === 'sent_rows');
    if (filled && (isLoaded || statement === 'find-stamped-repeats')) put(session, filled.name, []);
    return session;
  }

  #read(bytes: Buffer): unknown[] {
    const rows: unknown[] = [];
    for (let at = 0; at < bytes.length; ) {
      const [count, found, end] = readBlock(bytes, at);
      const own = this.#rows[Number(found)];
      if (own?.length !== count) throw new Error('a simulated server gets other rows than it has returned');
      rows.push(...own);
      at = end;
    }
    return rows;
  }
}

function rowsIn({ events, changes, originals, repeats, deletions, numbered }: Session, table: string) {
  switch (table) {
    case 'staged_events':
      return events ?? [];
    case 'staged_changes':
      return changes ?? [];
    case 'originals':
      return originals ?? [];
    case 'repeats':
      return [...(repeats ?? [])];
    case 'deletions':
      return [...(deletions ?? [])];
    default:
      return numbered ?? [];
  }
}

function put(session: Session, table: string, rows: readonly unknown[]): void {
  switch (table) {
    case 'staged_events':
      session.events = [...rows] as StagedEvent[];
      return;
    case 'staged_changes':
      session.changes = [...rows] as ChangeRow[];
      return;
    case 'originals':
      session.originals = [...rows] as StoredEvent[];
      return;
    case 'repeats':
      session.repeats = new Set(rows as number[]);
      return;
    case 'deletions':
      session.deletions = new Map(rows as [string, number][]);
      return;
    default:
      session.numbered = [...rows] as NonNullable<Session['numbered']>;
  }
}

/** The first value of each column is the text, the others are empty. */
function blockOf(columns: readonly string[], rows: number, text: string): Buffer {
  const values = Buffer.concat([string(text), Buffer.alloc(rows - 1)]);
  const parts = columns.flatMap((column) => [string(column), string('String'), values]);
  return Buffer.concat([number(columns.length), number(rows), ...parts]);
}

/** Returns how many rows a block has, the first value of its last column, and where it ends. */
function readBlock(bytes: Buffer, start: number): [rows: number, text: string, end: number] {
  let at = start;
  const next = () => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = bytes[at] ?? 0;
      at += 1;
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  };
  const text = () => {
    const length = next();
    at += length;
    return bytes.toString('utf8', at - length, at);
  };
  const [columns, rows] = [next(), next()];
  let first = '';
  for (let column = 0; column < columns; column += 1) {
    text();
    text();
    first = text();
    at += rows - 1;
  }
  return [rows, first, at];
}

function string(value: string): Buffer {
  return Buffer.concat([number(Buffer.byteLength(value)), Buffer.from(value)]);
}

function number(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return Buffer.from([...bytes, rest]);
}

/** Returns the parts of a form. @param type the header that names what separates them */
export function partsOf(body: Buffer, type: string): SentTable[] {
  const separator = Buffer.from(`--${/boundary=(.+)$/.exec(type)?.[1] ?? ''}`);
  const parts: SentTable[] = [];
  for (let at = body.indexOf(separator); at >= 0; ) {
    const next = body.indexOf(separator, at + separator.length);
    if (next < 0) break;
    const head = body.indexOf('\r\n\r\n', at);
    const name = /name="(\w+)"/.exec(body.toString('utf8', at, head))?.[1] ?? '';
    parts.push({ name, bytes: body.subarray(head + 4, next - 2) });
    at = next;
  }
  return parts;
}
