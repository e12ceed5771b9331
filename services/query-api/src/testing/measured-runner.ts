import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { Query } from '../clickhouse/query.ts';
import type { QueryRunner } from '../clickhouse/query-runner.ts';
import { querySettings } from '../clickhouse/query-settings.ts';
import type { Row } from '../clickhouse/row-parser.ts';
import { LOCAL_TABLES } from '../clickhouse/tables.ts';
import type { QueryConfig } from '../config.ts';

/** What queries made ClickHouse read. */
export interface ReadCost {
  queries: number;
  rows: number;
  /** Parts and granules that were left to read after planning. */
  parts: number;
  granules: number;
  /** Plans that looked at the granules one by one, instead of finding the place in the sorting key. */
  exhaustivePlans: number;
}

export interface MeasuredRunner extends Pick<QueryRunner, 'rows' | 'all'> {
  /** Runs some queries and returns their cost. */
  measure(work: () => Promise<unknown>): Promise<ReadCost>;
  /** Called before each query. */
  beforeQuery: (query: Query) => Promise<void>;
}

/** Creates a query runner that adds up what ClickHouse read for its queries alone. It hides no deleted users. */
export function createMeasuredRunner(clickHouse: ClickHouseClient, config: QueryConfig): MeasuredRunner {
  let cost: ReadCost;

  async function all(query: Query): Promise<readonly Row[]> {
    const { workspace } = query;
    const { sql, params } = 'hiding' in query ? query.hiding(LOCAL_TABLES, undefined) : query.statement(LOCAL_TABLES);
    const options = {
      query_params: { ...params, workspace },
      clickhouse_settings: querySettings(config),
    };
    const plan = await clickHouse.query({ ...options, query: `EXPLAIN indexes = 1 ${sql}`, format: 'TabSeparatedRaw' });
    const result = await clickHouse.query({ ...options, query: sql, format: 'JSONCompact' });
    const { data, statistics } = await result.json<Row>();
    cost.queries += 1;
    cost.rows += statistics?.rows_read ?? Number.NaN;
    for (const line of (await plan.text()).split('\n')) {
      const [, parts, granules] = /Parts: (\d+) \| Granules: (\d+)/.exec(line) ?? [];
      cost.parts += Number(parts ?? 0);
      cost.granules += Number(granules ?? 0);
      if (line.includes('generic exclusion search')) cost.exhaustivePlans += 1;
    }
    return data;
  }

  const runner: MeasuredRunner = {
    all,
    beforeQuery: async () => undefined,
    async *rows(query) {
      await runner.beforeQuery(query);
      yield await all(query);
    },
    async measure(work) {
      cost = { queries: 0, rows: 0, parts: 0, granules: 0, exhaustivePlans: 0 };
      await work();
      return { ...cost };
    },
  };
  cost = { queries: 0, rows: 0, parts: 0, granules: 0, exhaustivePlans: 0 };
  return runner;
}
