import { Problem } from '@sluice/shared/http/problem';
import type { QueryParameters } from '@sluice/shared/http/query-string';
import { withIdentity } from '../../records/records.ts';
import { type QueryContext, type ReadDependencies, type RequestStore, untilStoreAnswers } from '../../store/store.ts';
import { parseSeriesRequest } from './series-parameters.ts';
import { SeriesReader, totalOf } from './series-reader.ts';

/** The number of a series over its range, and over the time before if it compares. `null`: no event has a number. */
export interface SeriesNumber {
  readonly value: number | null;
  readonly before: number | null;
}

type NumberContext = QueryContext & { readonly store: RequestStore };

/**
 * Returns what reads the number of a series: the `total` of `GET /events/series`.
 *
 * @throws {Problem} as the route does, and `query_too_expensive` where that responds without it
 */
export function seriesNumber({ config, queryRunner }: ReadDependencies) {
  const reader = new SeriesReader(queryRunner, config);
  return async (query: QueryParameters, context: NumberContext): Promise<SeriesNumber> => {
    const request = parseSeriesRequest(query);
    const { current, previous } = await untilStoreAnswers(context.store, async () =>
      reader.read(request, await withIdentity(queryRunner, request.selection, context)),
    );
    if (!current.complete || previous?.complete === false) {
      throw new Problem('query_too_expensive', 'The number could not be computed within the time of a report.');
    }
    return { value: totalOf(request, current), before: previous ? totalOf(request, previous) : null };
  };
}
