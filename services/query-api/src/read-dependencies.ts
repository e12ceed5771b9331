import type { QueryRunner } from './clickhouse/query-runner.ts';
import type { QueryConfig } from './config.ts';

/** What the routes of reads need. */
export interface ReadDependencies {
  readonly config: QueryConfig;
  readonly queryRunner: QueryRunner;
}
