import { ALL_OTHERS, keptFromMs } from '@sluice/shared/config/retention-days';
import { FreshPoll } from '../fresh-poll.ts';
import type { QueryRunner } from '../query-runner.ts';
import type { Sql } from '../sql.ts';
import type { KeptFrom } from '../stores.ts';
import type { Tables } from '../tables.ts';

/** How old a poll may be, in milliseconds: a retention is in force within this time, and that of a poll. */
const FRESH_MS = 1_000;

/** Knows for how many days the events of each workspace are kept, from polls of one small table. */
export class EventRetention {
  readonly #days: FreshPoll<ReadonlyMap<string, number>>;
  readonly #nowMs: () => number;

  /** @param nowMs returns the time in milliseconds since 1970 */
  constructor(queryRunner: Pick<QueryRunner, 'all'>, nowMs: () => number = () => Date.now()) {
    this.#nowMs = nowMs;
    const query = async (signal: AbortSignal) => {
      const rows = (await queryRunner.all({
        kind: 'event_retention',
        urgent: true,
        workspace: '',
        signal,
        statement: retentionQuery,
      })) as [number, readonly string[]][];
      return new Map(rows.flatMap(([days, workspaces]) => workspaces.map((workspace) => [workspace, days] as const)));
    };
    this.#days = new FreshPoll(query, { freshMs: FRESH_MS });
  }

  start(): void {
    this.#days.start();
  }

  async stop(): Promise<void> {
    await this.#days.stop();
  }

  readonly keptFrom: KeptFrom = async (workspace) => {
    const all = await this.#days.value();
    const days = all.get(workspace) ?? all.get(ALL_OTHERS);
    return days === undefined ? undefined : keptFromMs(days, this.#nowMs());
  };
}

function retentionQuery(tables: Tables): Sql {
  return {
    sql: `SELECT days, groupArray(workspace_id) FROM ${tables.retentionOfAllWorkspaces} WHERE days > 0 GROUP BY days`,
    params: {},
  };
}
