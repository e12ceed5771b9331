import { Problem } from '@sluice/shared/http/problem';
import { outcomeOf } from './query-error.ts';
import type { RowBatches } from './row-parser.ts';
import type { RequestStore, Store } from './store.ts';

/**
 * Runs a query, and again in another store when its store fails before the first row.
 *
 * @param onRestart is called when the query begins anew after some rows; without it, it does not then
 */
export async function* withFailover(
  requestStore: RequestStore,
  run: (store: Store) => RowBatches,
  onRestart?: () => void,
): RowBatches {
  for (let store = await requestStore.current(); ; ) {
    let hasRows = false;
    try {
      for await (const batch of run(store)) {
        hasRows = true;
        yield batch;
      }
      return;
    } catch (error) {
      const mayRestart = (!hasRows || onRestart !== undefined) && isStoreAway(error);
      const other = mayRestart ? await requestStore.otherThan(store) : undefined;
      if (!other) throw error;
      store = other;
      onRestart?.();
    }
  }
}

/**
 * Runs what reads a store, and again when its store has failed and there is another one.
 *
 * @param run has to have sent nothing when it rejects
 */
export async function untilStoreAnswers<Result>(
  requestStore: RequestStore,
  run: () => Promise<Result>,
): Promise<Result> {
  for (;;) {
    try {
      return await run();
    } catch (error) {
      if (!isStoreAway(error)) throw error;
      const store = await requestStore.current().catch(() => undefined);
      if (!store || !(await requestStore.otherThan(store))) throw error;
    }
  }
}

/** A problem is that of the query for what is hidden. */
function isStoreAway(error: unknown): boolean {
  return outcomeOf(error instanceof Problem ? error.cause : error) === 'unavailable';
}
