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
