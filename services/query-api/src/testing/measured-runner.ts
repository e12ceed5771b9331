import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { QueryConfig } from '../config.ts';
import type { Row, RowBatches } from '../store/clickhouse-reader.ts';
import type { Query } from '../store/query.ts';
import { querySettings } from '../store/query-settings.ts';
import { LOCAL_TABLES, type Tables } from '../store/tables.ts';

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

const NOTHING: ReadCost = { queries: 0, rows: 0, parts: 0, granules: 0, exhaustivePlans: 0 };

/** Runs queries, and adds up what ClickHouse read for them alone. It hides no deleted users. */
export class MeasuredRunner {
  readonly #clickHouse: ClickHouseClient;
  readonly #config: QueryConfig;
  readonly #tables: Tables;
  #cost: ReadCost = { ...NOTHING };
  /** Called before each query whose rows are read in batches. */
  beforeQuery: (query: Query) => Promise<void> = async () => undefined;

  constructor(clickHouse: ClickHouseClient, config: QueryConfig, tables = LOCAL_TABLES) {
    this.#clickHouse = clickHouse;
    this.#config = config;
    this.#tables = tables;
  }

  /** Runs some queries and returns their cost. */
  async measure(work: () => Promise<unknown>): Promise<ReadCost> {
    this.#cost = { ...NOTHING };
    await work();
    return { ...this.#cost };
  }

  async *rows(query: Query): RowBatches {
    await this.beforeQuery(query);
    yield await this.all(query);
  }

  async all(query: Query): Promise<readonly Row[]> {
    const { workspace } = query;
    const { sql, params } = 'hiding' in query ? query.hiding(this.#tables, undefined) : query.statement(this.#tables);
    const options = {
      query_params: { ...params, ...this.#tables.params, workspace },
      clickhouse_settings: querySettings(this.#config),
    };
    const explain = { ...options, query: `EXPLAIN indexes = 1 ${sql}`, format: 'TabSeparatedRaw' } as const;
    const plan = await this.#clickHouse.query(explain);
    const result = await this.#clickHouse.query({ ...options, query: sql, format: 'JSONCompact' });
    const { data, statistics } = await result.json<Row>();
    const cost = this.#cost;
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
}
