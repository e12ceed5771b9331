import type { QueryRunner } from '../clickhouse/query-runner.ts';

/** Runs queries of reports: in their own slots, and as too expensive when they take too long. */
export type ReportRunner = Pick<QueryRunner, 'rows' | 'all'>;

/** Returns a query runner whose queries are those of reports. */
export function createReportRunner(queryRunner: ReportRunner): ReportRunner {
  return {
    rows: (query) => queryRunner.rows({ ...query, pool: 'reports', graceMs: 0 }),
    all: async (query) => await queryRunner.all({ ...query, pool: 'reports', graceMs: 0 }),
  };
}
