import { parseRecords } from '../base/base.ts';

/** A row of a result. */
export type Row = Readonly<Record<string, unknown>>;

export interface Rows {
  /** The names of the columns, in the order of the statement: an object has names that are whole numbers first. */
  readonly columns: readonly string[];
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
  let columns: readonly string[] = [];
  let characters = 0;
  if (!body) return { columns, rows, isWhole: true };
  for await (const line of linesOf(body)) {
    characters += line.length;
    // One row is shown however long it is.
    if (rows.length === rowsMax || (rows.length > 0 && characters > charactersMax))
      return { columns, rows, isWhole: false };
    if (rows.length === 0) columns = namesOf(line);
    rows.push(parseRecords(line) as Row);
  }
  return { columns, rows, isWhole: true };
}

/** Returns the names of the members of an object, in the order of its JSON text. */
function namesOf(json: string): readonly string[] {
  const names = new Set<string>();
  let depth = 0;
  for (const [token, text] of json.matchAll(/("(?:[^"\\]|\\.)*")\s*:|"(?:[^"\\]|\\.)*"|[{}[\]]/g)) {
    if (text !== undefined && depth === 1) names.add(JSON.parse(text) as string);
    else if (token === '{' || token === '[') depth += 1;
    else if (token === '}' || token === ']') depth -= 1;
  }
  return [...names];
}

async function* linesOf(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string, void, undefined> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  // The beginning of a line that has not ended. It may come in many chunks, and each is searched once.
  let rest: string[] = [];
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const [end = '', ...lines] = value.split('\n');
      rest.push(end);
      if (lines.length === 0) continue;
      yield rest.join('');
      rest = [lines.pop() ?? ''];
      yield* lines;
    }
  } catch (error) {
    throw error instanceof TypeError ? new Error('The response broke off.') : error;
  } finally {
    void reader.cancel().catch(() => undefined);
  }
}
