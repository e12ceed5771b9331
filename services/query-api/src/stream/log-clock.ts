import { type QueryRunner, RequestStore, type Stores, type Tables } from '../store/store.ts';
import { asNewestProgress, newestProgress } from './progress-query.ts';

/** How long a reading is used, in milliseconds. */
const KEPT_MS = 5_000;

/** The time of the log at a moment, in milliseconds since 1970. */
export interface LogTime {
  /** By the clock of ClickHouse. */
  readonly nowMs: number;
  /** Everything that Kafka had appended before is stored. Undefined: the writers have not said so lately. */
  readonly throughMs: number | undefined;
}

export interface LogClockOptions {
  readonly queryRunner: Pick<QueryRunner, 'all'>;
  readonly stores: Stores;
}

/** Says how far the log is stored, as the writers record it. All readers share a reading of the last seconds. */
export class LogClock {
  readonly #options: LogClockOptions;
  #last: { readonly atMs: number; readonly time: Promise<LogTime> } | undefined;

  constructor(options: LogClockOptions) {
    this.#options = options;
  }

  /** @throws {Problem} `store_unavailable` */
  async read(): Promise<LogTime> {
    if (!this.#last || performance.now() - this.#last.atMs > KEPT_MS) {
      const last = { atMs: performance.now(), time: this.#read() };
      this.#last = last;
      last.time.catch(() => {
        if (this.#last === last) this.#last = undefined;
      });
    }
    return await this.#last.time;
  }

  async #read(): Promise<LogTime> {
    const { queryRunner, stores } = this.#options;
    const store = new RequestStore(stores);
    const common = { kind: 'log_time', urgent: true, workspace: '', store } as const;
    const rows = await queryRunner.all({ ...common, statement: logTimeQuery });
    if (!rows[0]) throw new Error('ClickHouse has returned no row of its time');
    const progress = asNewestProgress(rows[0][2]);
    const isKnown = rows.every(([, shard]) => progress.some((one) => one.shard === shard));
    return {
      nowMs: rows[0][0] as number,
      throughMs: isKnown ? Math.min(...progress.map(({ throughMs }) => throughMs)) : undefined,
    };
  }
}

/** A row for each server: the time, the number of the server, and what its writers have recorded. */
function logTimeQuery(tables: Tables) {
  const progress = newestProgress(tables);
  return {
    sql: `SELECT toUnixTimestamp64Milli(now64(3)), shard, ${progress} FROM ${tables.newestBlocks}`,
    params: {},
  };
}
