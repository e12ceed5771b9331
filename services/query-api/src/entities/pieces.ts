import { Problem } from '@sluice/shared/http/problem';
import type { QuerySettings } from '../clickhouse/query-settings.ts';
import { ClickHouseException } from '../clickhouse/read-failures.ts';

/** How many bytes one query may return of several items. */
export const PIECE_BYTES_MAX = 4 * 1_024 * 1_024;

const PIECE: QuerySettings = { max_result_bytes: String(PIECE_BYTES_MAX) };

/** ClickHouse's error of a result that is too large. */
const TOO_MANY_BYTES = 396;

/** After so many pieces of a size, the next one has twice as many items. */
const PIECES_OF_A_SIZE = 4;

/** Some items, and what was read of them. */
export interface Piece<Item, Found> {
  readonly items: readonly Item[];
  readonly found: Found;
}

/**
 * Reads something of each of some items, in their order: of all at once if it is little, and otherwise of fewer at a time.
 * The next piece is read when it is wanted, so what a caller holds does not grow with the size of the items.
 *
 * @param read sends its queries with the settings
 * @param readAlone reads what is too large although it is a single item
 */
export async function* inPieces<Item, Found>(
  items: readonly Item[],
  read: (items: readonly Item[], settings: QuerySettings) => Promise<Found>,
  readAlone: (item: Item) => Promise<Found>,
): AsyncGenerator<Piece<Item, Found>, void, undefined> {
  let size = items.length;
  let pieces = 0;
  for (let first = 0; first < items.length; ) {
    const some = items.slice(first, first + size);
    const piece = await readIfSmall(some, read);
    const [single, ...others] = some;
    if (!piece && others.length > 0) {
      size = Math.ceil(some.length / 2);
      pieces = 0;
      continue;
    }
    yield piece ?? { items: some, found: await readAlone(single as Item) };
    first += some.length;
    pieces += 1;
    if (pieces % PIECES_OF_A_SIZE === 0) size *= 2;
  }
}

async function readIfSmall<Item, Found>(
  items: readonly Item[],
  read: (items: readonly Item[], settings: QuerySettings) => Promise<Found>,
): Promise<Piece<Item, Found> | undefined> {
  try {
    return { items, found: await read(items, PIECE) };
  } catch (error) {
    const cause = error instanceof Problem ? error.cause : error;
    if (cause instanceof ClickHouseException && cause.code === TOO_MANY_BYTES) return undefined;
    throw error;
  }
}
