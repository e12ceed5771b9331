import { parseRecords } from './records.ts';

/** A row of a result, its columns in the order of the statement. */
export type Row = Readonly<Record<string, unknown>>;

export interface Rows {
  readonly rows: readonly Row[];
  /** Whether the result has no more. */
  readonly isWhole: boolean;
}

/** A browser shows so many rows at most, of about so many characters of JSON together. */
const ROWS_MAX = 1_000;
const CHARACTERS_MAX = 4_000_000;

/**
 * Reads the rows of a response in NDJSON up to what a browser can show. The rest of the response is cancelled.
 *
 * @throws {Error} when the response breaks off
 */
export async function readRows({ body }: Response, rowsMax = ROWS_MAX, charactersMax = CHARACTERS_MAX): Promise<Rows> {
  const rows: Row[] = [];
  let characters = 0;
  if (!body) return { rows, isWhole: true };
  for await (const line of linesOf(body)) {
    characters += line.length;
    // One row is shown however long it is.
    if (rows.length === rowsMax || (rows.length > 0 && characters > charactersMax)) return { rows, isWhole: false };
    rows.push(parseRecords(line) as Row);
  }
  return { rows, isWhole: true };
}

async function* linesOf(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string, void, undefined> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (rest + value).split('\n');
      rest = lines.pop() ?? '';
      yield* lines;
    }
  } catch (error) {
    throw error instanceof TypeError ? new Error('The response broke off.') : error;
  } finally {
    void reader.cancel().catch(() => undefined);
  }
}
