/** A table as it is saved: its columns, and the cells of each row. */
export interface Table {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly (string | number | null)[])[];
}

/** Returns records as a table: a column for each member that one of them has, with objects, arrays and booleans as JSON. */
export function tableOf(records: readonly object[]): Table {
  const columns = [...new Set(records.flatMap((record) => Object.keys(record)))];
  return { columns, rows: records.map((record) => columns.map((column) => cellValue(Object(record)[column]))) };
}

function cellValue(value: unknown): string | number | null {
  if (value === undefined || value === null) return null;
  return typeof value === 'string' || typeof value === 'number' ? value : JSON.stringify(value);
}

/** Spreadsheets run a text that begins so as a formula; names come from outside. */
const FORMULA = /^[=+\-@\t\r]/;

/** Returns a table as CSV (RFC 4180). A text that a spreadsheet would run as a formula gets an apostrophe in front. */
export function csvOf({ columns, rows }: Table): string {
  return [columns, ...rows].map((row) => `${row.map(cellOf).join(',')}\n`).join('');
}

/** Returns a CSV of query-api, which has all texts in quotes, with an apostrophe in front of those that are formulas. */
export function withoutFormulas(csv: string): string {
  // A quote that ends a text, or stands for one in it, has a comma, a line break or another quote behind it.
  return csv.replaceAll(/(^|[,\n])"(?=[=+\-@\t\r])/g, `$1"'`);
}

function cellOf(value: string | number | null): string {
  if (value === null) return '';
  if (typeof value === 'number') return String(value);
  return `"${(FORMULA.test(value) ? `'${value}` : value).replaceAll('"', '""')}"`;
}

interface CsvButtonProps {
  /** What the table has, for the name of the button and of the file. */
  readonly name: string;
  readonly table: () => Table;
}

/** Saves a table as CSV. */
export function CsvButton({ name, table }: CsvButtonProps) {
  return (
    <button
      type="button"
      onClick={() => saveFile(`${name.toLowerCase().replaceAll(' ', '-')}.csv`, new Blob([csvOf(table())]))}
    >
      {name} as CSV
    </button>
  );
}

/** Has the browser save a file. */
export function saveFile(name: string, content: Blob): void {
  const href = URL.createObjectURL(content);
  Object.assign(document.createElement('a'), { href, download: name }).click();
  URL.revokeObjectURL(href);
}
