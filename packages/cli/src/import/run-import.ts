import type { Batch, Format } from './format.ts';
import type { LineToSend } from './line-content.ts';
import { type Line, readLines } from './lines.ts';
import { createOrderedPool } from './ordered-pool.ts';
import type { ImportCounts } from './progress.ts';
import type { RefusedLines } from './refused-lines.ts';
import { FatalResponse, GivenUp, type Sender } from './sender.ts';

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

/** `counts` changes while the import runs. */
export interface Import {
  readonly counts: ImportCounts;
  /** Sends everything; resolves to how the import ended. */
  run(): Promise<ImportEnd>;
}

/** How an import ended. */
export type ImportEnd =
  | { readonly kind: 'complete' }
  /** All lines up to `line` were accepted or refused, and perhaps some after it. */
  | { readonly kind: 'interrupted'; readonly line: number }
  /** `reason` is a phrase for people, `line` the first line that was neither accepted nor refused. */
  | { readonly kind: 'stopped'; readonly reason: string; readonly line: number };

/** Creates an import of every line of `chunks`. It sends lines that set properties of the same entity in their order. */
export function createImport({ format, chunks, sender, refusedLines, concurrency, signal }: ImportOptions): Import {
  const counts = { accepted: 0, events: 0, refused: 0 };
  /** The numbers of lines that are neither accepted nor refused yet, in the order in which they were read. */
  const open = new Set<number>();
  const stop = new AbortController();
  const ended = AbortSignal.any([signal, stop.signal]);
  let lineNumber = 0;
  /** Without blank ones. */
  let lines = 0;
  /** Whether the last line that is not blank says that the file is complete. */
  let isComplete = !format.hasTrailer;
  const gatherer = format.createGatherer();
  const pool = createOrderedPool({ concurrency, waitingMax: 32 * concurrency, bytesMax: 2 * LINE_BYTES_MAX });

  function refuse(number: number, reason: string): void {
    counts.refused += 1;
    refusedLines.add(number, reason);
  }

  function settle({ number, events }: LineToSend, reason: string | undefined): void {
    open.delete(number);
    if (reason === undefined) {
      counts.accepted += 1;
      counts.events += events;
    } else refuse(number, reason);
  }

  async function send(lines: Batch['lines']): Promise<void> {
    const outcome = await sender.send(format.requestOf(lines), ended);
    if (outcome.kind === 'accepted') {
      const rejected = format.rejectedIn(outcome.response);
      for (const [index, line] of lines.entries()) settle(line, rejected.get(index));
      return;
    }
    const [first, ...others] = lines;
    const [next, ...rest] = others.splice(Math.floor(others.length / 2));
    if (!next) return settle(first, outcome.reason);
    // What is wrong may be one line, or the size of them all.
    await send([first, ...others]);
    await send([next, ...rest]);
  }

  async function enqueue(batches: readonly Batch[]): Promise<void> {
    for (const { lines, orderKey, bytes } of batches) await pool.add({ key: orderKey, bytes, run: () => send(lines) });
  }

  async function take({ number, bytes }: Line): Promise<void> {
    lineNumber = number;
    if (!bytes) return refuse(number, `is longer than ${LINE_BYTES_MAX} bytes`);
    const content = format.readLine(bytes, number);
    if (content.kind === 'blank') return;
    isComplete = !format.hasTrailer || content.kind === 'trailer';
    if (content.kind === 'trailer') {
      if (content.lines === lines) return;
      return refuse(number, `says that ${content.lines} lines come before it, but the file has ${lines}`);
    }
    lines += 1;
    if (content.kind === 'refused') return refuse(number, content.reason);
    open.add(number);
    await enqueue(gatherer.add(content));
  }

  /** The first line that is neither accepted nor refused. */
  function firstOpen(): number {
    const [line = lineNumber + 1] = open;
    return line;
  }

  return {
    counts,
    async run() {
      try {
        for await (const line of readLines(chunks, LINE_BYTES_MAX)) {
          if (signal.aborted) break;
          await take(line);
        }
        if (!signal.aborted) await enqueue(gatherer.rest());
        await pool.drained();
        if (signal.aborted) return { kind: 'interrupted', line: firstOpen() - 1 };
        return isComplete ? { kind: 'complete' } : { kind: 'stopped', reason: CUT_OFF, line: firstOpen() };
      } catch (error) {
        stop.abort();
        await pool.settled();
        if (signal.aborted) return { kind: 'interrupted', line: firstOpen() - 1 };
        return { kind: 'stopped', reason: reasonOf(error), line: firstOpen() };
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
