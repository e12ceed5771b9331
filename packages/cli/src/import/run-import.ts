import type { Batch, Format, Gatherer, LineToSend } from './format.ts';
import { FORMATS } from './formats.ts';
import { OrderedPool } from './ordered-pool.ts';
import type { ImportCounts } from './progress.ts';
import { type RecognisedLine, recogniseLine } from './recognised-line.ts';
import type { RefusedLines } from './refused-lines.ts';
import { FatalResponse, GivenUp, type Sender } from './sender.ts';
import { type Line, readLines } from './source.ts';

/** Longer lines are refused without sending them: no service accepts a body of this size. */
const LINE_BYTES_MAX = 64 * 1_024 * 1_024;

const CUT_OFF = 'the file was cut off: the line that says that it is complete is missing';

export interface ImportOptions {
  readonly format: Format;
  readonly chunks: AsyncIterable<Buffer>;
  readonly sender: Sender;
  readonly refusedLines: RefusedLines;
  readonly concurrency: number;
  /** Ends the import: requests under way are finished, no more are sent. */
  readonly signal: AbortSignal;
}

/** How an import ended. */
export type ImportEnd =
  | { readonly kind: 'complete' }
  /** All lines up to `line` were accepted or refused, and perhaps some after it. */
  | { readonly kind: 'interrupted'; readonly line: number }
  /** `reason` is a phrase for people, `line` the first line that was neither accepted nor refused. */
  | { readonly kind: 'stopped'; readonly reason: string; readonly line: number }
  /** The file has lines of another format, of which `line` is the first. Nothing was sent. */
  | { readonly kind: 'other_format'; readonly found: RecognisedLine; readonly line: number };

/** An import of every line of `chunks`. It sends lines that set properties of the same entity in their order. */
export class Import {
  readonly #options: ImportOptions;
  readonly #counts = { accepted: 0, events: 0, refused: 0 };
  /** The numbers of lines that are neither accepted nor refused yet, in the order in which they were read. */
  readonly #open = new Set<number>();
  readonly #stop = new AbortController();
  readonly #ended: AbortSignal;
  readonly #gatherer: Gatherer;
  readonly #pool: OrderedPool;
  /** Whether a line had the form of the format, so that the file is what it is said to be. */
  #isOfFormat = false;
  #lineNumber = 0;
  /** Without blank ones. */
  #lines = 0;
  /** Whether the last line that is not blank says that the file is complete. */
  #isComplete: boolean;

  constructor(options: ImportOptions) {
    const { format, concurrency, signal } = options;
    this.#options = options;
    this.#ended = AbortSignal.any([signal, this.#stop.signal]);
    this.#gatherer = format.createGatherer();
    this.#pool = new OrderedPool({ concurrency, waitingMax: 32 * concurrency, bytesMax: 2 * LINE_BYTES_MAX });
    this.#isComplete = !format.hasTrailer;
  }

  /** They change while the import runs. */
  get counts(): ImportCounts {
    return this.#counts;
  }

  /** Sends everything; resolves to how the import ended. */
  async run(): Promise<ImportEnd> {
    const { chunks, signal } = this.#options;
    try {
      for await (const line of readLines(chunks, LINE_BYTES_MAX)) {
        if (signal.aborted) break;
        const found = this.#otherFormat(line);
        if (found) return { kind: 'other_format', found, line: line.number };
        await this.#take(line);
      }
      if (!signal.aborted) await this.#enqueue(this.#gatherer.rest());
      await this.#pool.drained();
    } catch (error) {
      this.#stop.abort();
      await this.#pool.settled();
      if (!signal.aborted) return { kind: 'stopped', reason: reasonOf(error), line: this.#firstOpen() };
    }
    if (signal.aborted) return { kind: 'interrupted', line: this.#firstOpen() - 1 };
    return this.#isComplete ? { kind: 'complete' } : { kind: 'stopped', reason: CUT_OFF, line: this.#firstOpen() };
  }

  /** What a line of another format is, before the first that is sent. */
  #otherFormat({ bytes }: Line): RecognisedLine | undefined {
    if (this.#isOfFormat || !bytes) return undefined;
    const found = recogniseLine(bytes);
    return found && (!found.format || FORMATS[found.format] !== this.#options.format) ? found : undefined;
  }

  async #take({ number, bytes }: Line): Promise<void> {
    const { format } = this.#options;
    this.#lineNumber = number;
    if (!bytes) return this.#refuse(number, `is longer than ${LINE_BYTES_MAX} bytes`);
    const content = format.readLine(bytes, number);
    if (content.kind === 'blank') return;
    this.#isComplete = !format.hasTrailer || content.kind === 'trailer';
    if (content.kind === 'trailer') {
      if (content.lines === this.#lines) return;
      return this.#refuse(number, `says that ${content.lines} lines come before it, but the file has ${this.#lines}`);
    }
    this.#lines += 1;
    if (content.kind === 'refused') return this.#refuse(number, content.reason);
    this.#isOfFormat = true;
    this.#open.add(number);
    await this.#enqueue(this.#gatherer.add(content));
  }

  async #enqueue(batches: readonly Batch[]): Promise<void> {
    for (const { lines, orderKey, bytes } of batches) {
      await this.#pool.add({ key: orderKey, bytes, run: () => this.#send(lines) });
    }
  }

  async #send(lines: Batch['lines']): Promise<void> {
    const { format, sender } = this.#options;
    const outcome = await sender.send(format.requestOf(lines), this.#ended);
    if (outcome.kind === 'accepted') {
      const rejected = format.rejectedIn(outcome.response);
      for (const [index, line] of lines.entries()) this.#settle(line, rejected.get(index));
      return;
    }
    const [first, ...others] = lines;
    const [next, ...rest] = others.splice(Math.floor(others.length / 2));
    if (!next) return this.#settle(first, outcome.reason);
    // What is wrong may be one line, or the size of them all.
    await this.#send([first, ...others]);
    await this.#send([next, ...rest]);
  }

  #settle({ number, events }: LineToSend, reason: string | undefined): void {
    this.#open.delete(number);
    if (reason === undefined) {
      this.#counts.accepted += 1;
      this.#counts.events += events;
    } else this.#refuse(number, reason);
  }

  #refuse(number: number, reason: string): void {
    this.#counts.refused += 1;
    this.#options.refusedLines.add(number, reason);
  }

  /** The first line that is neither accepted nor refused. */
  #firstOpen(): number {
    const [line = this.#lineNumber + 1] = this.#open;
    return line;
  }
}

/** A phrase for an expected failure; an error that is none is an error of this program, and is thrown. */
function reasonOf(error: unknown): string {
  if (error instanceof FatalResponse || error instanceof GivenUp) return error.message;
  const { code, message } = error as NodeJS.ErrnoException;
  if (code !== undefined) return `the file cannot be read: ${message}`;
  throw error;
}
