/** A table as it is saved: its columns, and the cells of each row. */
export interface Table {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | number | null)[])[];
}

/** Spreadsheets run a text that begins so as a formula; names come from outside. */
const FORMULA = /^[=+\-@\t\r]/;

/** Returns a table as CSV (RFC 4180). A text that a spreadsheet would run as a formula gets an apostrophe in front. */
export function csvOf({ columns, rows }: Table): string {
  return [columns, ...rows].map((row) => `${row.map(cellOf).join(',')}\n`).join('');
}

function cellOf(value: string | number | null): string {
  if (value === null) return '';
  if (typeof value === 'number') return String(value);
  return `"${(FORMULA.test(value) ? `'${value}` : value).replaceAll('"', '""')}"`;
}
