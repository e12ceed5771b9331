import { ErrorCodes } from '@sluice/shared/clickhouse/error-codes';
import type { Reservation } from '@sluice/shared/http/memory-budget';
import { Problem } from '@sluice/shared/http/problem';
import { ClickHouseException, type QuerySettings } from '../../store/store.ts';

/** How many bytes one query may return of several items. */
export const PIECE_BYTES_MAX = 4 * 1_024 * 1_024;

const PIECE: QuerySettings = { max_result_bytes: String(PIECE_BYTES_MAX) };

const RESULT_TOO_LARGE = new ErrorCodes('TOO_MANY_ROWS_OR_BYTES');

/** After so many pieces of a size, the next one has twice as many items. */
const PIECES_OF_A_SIZE = 4;

/** Some items, and what was read of them. */
export interface Piece<Item, Found> {
  readonly items: readonly Item[];
  readonly found: Found;
}

/** How the queries of a piece are sent, and where its memory is reserved. */
export interface PieceOptions {
  readonly settings: QuerySettings;
  readonly memory: Reservation | undefined;
}

interface ReadPieces<Item, Found> {
  /** Sends its queries with the options. */
  readonly readSome: (items: readonly Item[], options: PieceOptions) => Promise<Found>;
  /** Reads what is too large although it is a single item. */
  readonly readAlone: (item: Item, options: PieceOptions) => Promise<Found>;
}

/**
 * Reads something of each of some items, in their order: of all at once if it is little, and otherwise of fewer at a time.
 * The next piece is read when it is wanted, so what a caller holds does not grow with the size of the items.
 *
 * @param memory what the request holds: that of a piece is released when the next one is wanted
 */
export async function* inPieces<Item, Found>(
  items: readonly Item[],
  memory: Reservation | undefined,
  { readSome, readAlone }: ReadPieces<Item, Found>,
): AsyncGenerator<Piece<Item, Found>, void, undefined> {
  let size = items.length;
  let pieces = 0;
  for (let first = 0; first < items.length; ) {
    const some = items.slice(first, first + size);
    const held = memory?.part();
    try {
      const piece = await readIfSmall(some, readSome, held);
      const [single, ...others] = some;
      if (!piece && others.length > 0) {
        size = Math.ceil(some.length / 2);
        pieces = 0;
        continue;
      }
      yield piece ?? { items: some, found: await readAlone(single as Item, { settings: {}, memory: held }) };
    } finally {
      held?.release();
    }
    first += some.length;
    pieces += 1;
    if (pieces % PIECES_OF_A_SIZE === 0) size *= 2;
  }
}

async function readIfSmall<Item, Found>(
  items: readonly Item[],
  read: ReadPieces<Item, Found>['readSome'],
  memory: Reservation | undefined,
): Promise<Piece<Item, Found> | undefined> {
  try {
    return { items, found: await read(items, { settings: PIECE, memory }) };
  } catch (error) {
    const cause = error instanceof Problem ? error.cause : error;
    if (cause instanceof ClickHouseException && RESULT_TOO_LARGE.has(cause.code)) return undefined;
    throw error;
  }
}
