import { type Line, readLines } from './lines.ts';
import { createOrderedPool } from './ordered-pool.ts';
import type { ImportCounts } from './progress.ts';
import type { RefusedLines } from './refused-lines.ts';
import { FatalResponse, GivenUp, type Sender } from './sender.ts';
import { readSubmission, type SubmissionLine } from './submission-line.ts';

/** Longer lines are refused without sending them: no service accepts a body of this size. */
const LINE_BYTES_MAX = 64 * 1_024 * 1_024;

export interface ImportOptions {
  readonly chunks: AsyncIterable<Buffer>;
  readonly sender: Sender;
  readonly refusedLines: RefusedLines;
  readonly concurrency: number;
  /** Ends the import: requests under way are finished, no more are sent. */
  readonly signal: AbortSignal;
}

/** `counts` changes while the import runs. */
export interface Import {
  readonly counts: ImportCounts;
  /** The last line that was read. */
  readonly lineNumber: number;
  /** Sends everything; resolves to how the import ended. */
  run(): Promise<ImportEnd>;
}

/** How an import ended. */
export type ImportEnd =
  | { readonly kind: 'complete' }
  | { readonly kind: 'interrupted' }
  /** `reason` is a phrase for people, `line` the first line that was neither accepted nor refused. */
  | { readonly kind: 'stopped'; readonly reason: string; readonly line: number };

/** Creates an import of every line of `chunks`. It sends lines that set properties of the same entity in their order. */
export function createImport({ chunks, sender, refusedLines, concurrency, signal }: ImportOptions): Import {
  const counts = { submissions: 0, events: 0, refused: 0 };
  /** The numbers of lines that are being sent, in the order in which they were read. */
  const open = new Set<number>();
  const stop = new AbortController();
  const ended = AbortSignal.any([signal, stop.signal]);
  let lineNumber = 0;
  const pool = createOrderedPool({ concurrency, waitingMax: 32 * concurrency, bytesMax: 2 * LINE_BYTES_MAX });

  function refuse(number: number, reason: string): void {
    counts.refused += 1;
    refusedLines.add(number, reason);
  }

  async function send(number: number, line: SubmissionLine): Promise<void> {
    const outcome = await sender.send(line, ended);
    open.delete(number);
    if (outcome.kind === 'refused') refuse(number, outcome.reason);
    else {
      counts.submissions += 1;
      counts.events += line.events;
    }
  }

  async function take({ number, bytes }: Line): Promise<void> {
    lineNumber = number;
    if (!bytes) return refuse(number, `is longer than ${LINE_BYTES_MAX} bytes`);
    const content = readSubmission(bytes, number);
    if (content.kind === 'blank') return;
    if (content.kind === 'refused') return refuse(number, content.reason);
    open.add(number);
    await pool.add({ key: content.orderKey, bytes: bytes.length, run: () => send(number, content) });
  }

  return {
    counts,
    get lineNumber() {
      return lineNumber;
    },
    async run() {
      try {
        for await (const line of readLines(chunks, LINE_BYTES_MAX)) {
          if (signal.aborted) break;
          await take(line);
        }
        await pool.drained();
        return signal.aborted ? { kind: 'interrupted' } : { kind: 'complete' };
      } catch (error) {
        stop.abort();
        await pool.settled();
        if (signal.aborted) return { kind: 'interrupted' };
        // All lines are done up to the first that is still open, or to the last that was read.
        const [line = lineNumber + 1] = open;
        return { kind: 'stopped', reason: reasonOf(error), line };
      }
    },
  };
}

/** A phrase for an expected failure; an error that is none is a fault of this program, and is thrown. */
function reasonOf(error: unknown): string {
  if (error instanceof FatalResponse || error instanceof GivenUp) return error.message;
  const { code, message } = error as NodeJS.ErrnoException;
  if (code !== undefined) return `the file cannot be read: ${message}`;
  throw error;
}
