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

/** Returns a signal that aborts at the first signal to the process; a second one ends the process at once. */
export function interruption(): AbortSignal {
  const controller = new AbortController();
  let at = 0;
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.on(name, () => {
      // One Ctrl-C arrives twice: from the terminal and from npm.
      if (controller.signal.aborted && performance.now() - at > 500) process.exit(130);
      at ||= performance.now();
      controller.abort();
    });
  }
  return controller.signal;
}

const INTERVAL_MS = 2_000;

/** Prints how far a command is, a line every two seconds. */
export class ProgressLines {
  readonly #print: (line: string) => void;
  #printedAt = performance.now();

  constructor(print: (line: string) => void) {
    this.#print = print;
  }

  show(line: string): void {
    if (performance.now() - this.#printedAt < INTERVAL_MS) return;
    this.#printedAt = performance.now();
    this.#print(line);
  }
}

/** Bytes as megabytes, such as `12.3 MB`. */
export function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toLocaleString('en', { minimumFractionDigits: 1, maximumFractionDigits: 1 })} MB`;
}

/** The percentage, at most 100. */
export function percentageOf(done: number, all: number): string {
  return `${all === 0 ? 0 : Math.min(100, Math.floor((100 * done) / all))} %`;
}
