import type { Reservation } from '@sluice/shared/http/memory-budget';
import type { QueryKind } from '../metrics.ts';
import type { Row } from './clickhouse-reader.ts';
import type { HidingStatement, QueryContext, QueryOptions, Statement } from './query.ts';
import type { QueryRunner } from './query-runner.ts';
import type { TimeBudget } from './time-budget.ts';

/** Small queries of one request, which share its time. */
export class RequestQueries {
  readonly #queryRunner: Pick<QueryRunner, 'all'>;
  readonly #context: QueryContext;
  readonly #budget: TimeBudget;

  constructor(queryRunner: Pick<QueryRunner, 'all'>, context: QueryContext, budget: TimeBudget) {
    this.#queryRunner = queryRunner;
    this.#context = context;
    this.#budget = budget;
  }

  /** What the request holds. */
  get memory(): Reservation | undefined {
    return this.#context.memory;
  }

  /**
   * Returns all rows of a query.
   *
   * @param options by default its memory is that of the request, until its end
   * @throws {Problem} as {@link QueryRunner.all} does
   */
  async all(
    kind: QueryKind,
    statement: Statement['statement'] | Statement | HidingStatement,
    options: Pick<QueryOptions, 'settings' | 'memory' | 'pool' | 'graceMs'> = {},
  ): Promise<readonly Row[]> {
    const query = typeof statement === 'function' ? { statement } : statement;
    return await this.#queryRunner.all({ kind, budget: this.#budget, ...this.#context, ...options, ...query });
  }
}
