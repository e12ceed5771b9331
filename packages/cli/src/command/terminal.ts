import { createInterface } from 'node:readline/promises';

/** Where a command prints, and whom it asks. */
export interface Terminal {
  print(line: string): void;
  /** Asks the operator for confirmation. Resolves with false when nobody can be asked. */
  confirm(prompt: string): Promise<boolean>;
}

/** The terminal of the process. */
export const processTerminal: Terminal = {
  print: console.log,
  async confirm(prompt) {
    if (!process.stdin.isTTY) {
      console.log('There is no terminal to ask for confirmation. Run the command again with --yes.');
      return false;
    }
    const terminal = createInterface({ input: process.stdin, output: process.stdout });
    const reply = await terminal.question(prompt).finally(() => terminal.close());
    return /^y(es)?$/i.test(reply.trim());
  },
};

/** Returns rows of texts in columns, the first row being their header. */
export function inColumns(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((text, column) => text.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
