import { Turns } from '@sluice/shared/base/turns';
import { Problem } from '@sluice/shared/http/problem';
import type { QueryConfig } from '../config.ts';
import {
  isOutOfTime,
  type Query,
  type QueryOptions,
  type QueryRunner,
  type QuerySettings,
  type Row,
} from '../store/store.ts';

/** What makes a query that of a report: it runs in slots of their own, and is too expensive when it takes too long. */
export const REPORT = { pool: 'reports', graceMs: 0 } as const satisfies Partial<QueryOptions>;

/**
 * Returns the rows of a report's query, whose result is known to be small; `undefined` when it ran out of its time.
 *
 * @throws {Problem} as {@link QueryRunner.rows} does; `query_too_expensive` only for other budgets than time
 */
export async function reportRows(
  queryRunner: Pick<QueryRunner, 'all'>,
  query: Query,
): Promise<readonly Row[] | undefined> {
  return await inItsTime(() => queryRunner.all({ ...query, ...REPORT }));
}

/**
 * Reads the rows of a report's query one by one, which may be many, and gives way to other requests meanwhile; otherwise
 * as {@link reportRows}.
 *
 * @returns whether the query came to its end within its time
 */
export async function readReport(
  queryRunner: Pick<QueryRunner, 'rows'>,
  query: Query,
  read: (row: Row) => void,
): Promise<boolean> {
  const turns = new Turns();
  const readAll = async () => {
    for await (const batch of queryRunner.rows({ ...query, ...REPORT })) {
      for (const row of batch) {
        read(row);
        await turns.next();
      }
    }
    return true;
  };
  return (await inItsTime(readAll)) ?? false;
}

/** Returns what a query of a report leads to; `undefined` when it ran out of its time. */
async function inItsTime<Result>(run: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof Problem && error.code === 'query_too_expensive' && isOutOfTime(error.cause)) return undefined;
    throw error;
  }
}

/** The share of a query's memory that its groups may take before they go to the disk. What they become needs memory too. */
const GROUPS_SHARE = 1 / 4;

/** Returns the settings of a query whose groups, such as users, may be very many. */
export function collectingSettings({ QUERY_MEMORY_BYTES_MAX }: QueryConfig): QuerySettings {
  return {
    // Groups are spread over all of the sorting key.
    optimize_aggregation_in_order: '0',
    max_bytes_before_external_group_by: String(Math.floor(QUERY_MEMORY_BYTES_MAX * GROUPS_SHARE)),
  };
}
