/**
 * Some rows in ClickHouse's format Native, which has them column by column. Each column is as it is on the wire: its name, its type, and a
 * value for each row.
 *
 * @see https://clickhouse.com/docs/interfaces/formats/Native
 */
export interface NativeBlock {
  readonly rows: number;
  readonly columns: ReadonlyMap<string, Uint8Array>;
}

/** How many bytes a value has of each type; one of `String` begins with its length. */
const WIDTHS: Readonly<Record<string, number>> = { UInt8: 1, UInt32: 4, Int64: 8, UInt64: 8, DateTime64: 8, UUID: 16 };

/**
 * Splits bytes in the format Native into blocks, whose columns are views of them.
 *
 * @throws {Error} when they end early, or have a type that is not known here
 */
export function readBlocks(bytes: Uint8Array): NativeBlock[] {
  const reader = new Reader(bytes);
  const blocks: NativeBlock[] = [];
  while (!reader.isAtEnd) {
    const count = reader.number();
    const rows = reader.number();
    const columns = new Map<string, Uint8Array>();
    for (let index = 0; index < count; index += 1) {
      const start = reader.position;
      const name = reader.text();
      reader.skipValues(reader.text(), rows);
      columns.set(name, bytes.subarray(start, reader.position));
    }
    blocks.push({ rows, columns });
  }
  return blocks;
}

/** Returns the bytes of blocks with some of their columns. @throws {Error} when a block lacks one */
export function* bytesOfBlocks(blocks: readonly NativeBlock[], names: readonly string[]): Generator<Uint8Array> {
  for (const { rows, columns } of blocks) {
    yield Buffer.from([...encoded(names.length), ...encoded(rows)]);
    for (const name of names) {
      const column = columns.get(name);
      if (column === undefined) throw new Error(`the rows of a temporary table have no column ${name}`);
      yield column;
    }
  }
}

export function rowsOf(blocks: readonly NativeBlock[]): number {
  return blocks.reduce((sum, { rows }) => sum + rows, 0);
}

class Reader {
  readonly #bytes: Uint8Array;
  #position = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get position(): number {
    return this.#position;
  }

  get isAtEnd(): boolean {
    return this.#position === this.#bytes.length;
  }

  /** A number of variable length: seven bits in each byte, the lowest first. */
  number(): number {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = this.#bytes[this.#position];
      if (byte === undefined) throw new Error(ENDED_EARLY);
      this.#position += 1;
      value += (byte & 127) * factor;
      if (byte < 128) return value;
    }
  }

  text(): string {
    const length = this.number();
    const start = this.#position;
    this.#skip(length);
    return Buffer.from(this.#bytes.subarray(start, this.#position)).toString();
  }

  skipValues(type: string, rows: number): void {
    const width = WIDTHS[type.replace(/\(.*/, '')];
    if (width !== undefined) this.#skip(rows * width);
    else if (type !== 'String') throw new Error(`a temporary table cannot have a column of the type ${type}`);
    else for (let row = 0; row < rows; row += 1) this.#skip(this.number());
  }

  #skip(bytes: number): void {
    this.#position += bytes;
    if (this.#position > this.#bytes.length) throw new Error(ENDED_EARLY);
  }
}

const ENDED_EARLY = 'the response of ClickHouse ends amid a block of rows';

function encoded(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 127; rest = Math.floor(rest / 128)) bytes.push((rest % 128) + 128);
  return [...bytes, rest];
}
