import type { QueryOptions } from './query.ts';
import { isOutOfMemory } from './query-error.ts';
import { SMALL_BLOCKS_SETTINGS } from './query-settings.ts';
import type { RowBatches } from './row-parser.ts';

/**
 * Runs a query, and again in small blocks within the same time when it ran out of memory before its first row: blocks of
 * large events may have been too large (docs/design/decisions/0039-blocks-of-large-events.md).
 *
 * @param timeoutMs how long both may take together, in milliseconds
 */
export async function* retryInSmallBlocks<Query extends Pick<QueryOptions, 'settings' | 'isFollowed'>>(
  query: Query,
  timeoutMs: number,
  run: (query: Query, timeoutMs: number) => RowBatches,
): RowBatches {
  const startedAt = performance.now();
  let hasRows = false;
  try {
    for await (const batch of run(query, timeoutMs)) {
      hasRows = true;
      yield batch;
    }
  } catch (error) {
    if (hasRows || query.isFollowed || !isOutOfMemory(error)) throw error;
    const leftMs = Math.max(1, Math.floor(timeoutMs - (performance.now() - startedAt)));
    yield* run({ ...query, settings: { ...query.settings, ...SMALL_BLOCKS_SETTINGS } }, leftMs);
  }
}
