import { csvOf, type Table } from './csv.ts';
import { saveFile } from './save-file.ts';

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
