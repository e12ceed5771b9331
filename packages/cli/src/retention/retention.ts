import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { ALL_OTHERS, BEFORE_EVENTS_MS } from '@sluice/shared/event-retention';
import { readRetention, recordRetention } from '@sluice/writer/clickhouse/retention-settings';

/** For how many days events are kept; `undefined`: for ever. */
export interface Retention {
  /** Of all workspaces that are not named in `own`. */
  readonly others: number | undefined;
  readonly own: ReadonlyMap<string, number>;
  /** How many workspaces statements name: those in `own`, and others whose retention was cleared in the last day. */
  readonly named: number;
}

const DAY_MS = 86_400_000;

const COUNT = `SELECT count() AS found FROM events
  WHERE workspace_id = {workspace:String}
    AND timestamp >= fromUnixTimestamp64Milli({fromMs:Int64}) AND timestamp < fromUnixTimestamp64Milli({toMs:Int64})`;

/** The retention of a deployment, for the operator. All methods throw ClickHouse's errors. */
export class RetentionSettings {
  readonly #client: ClickHouseClient;

  constructor(client: ClickHouseClient) {
    this.#client = client;
  }

  async read(): Promise<Retention> {
    const days = new Map<string, number>();
    let named = 0;
    for (const setting of await readRetention(this.#client)) {
      if (setting.days > 0) days.set(setting.workspace, setting.days);
      if (setting.workspace !== ALL_OTHERS && (setting.days > 0 || setting.ageMs < DAY_MS)) named += 1;
    }
    const others = days.get(ALL_OTHERS);
    days.delete(ALL_OTHERS);
    return { others, own: days, named };
  }

  /** @param days `undefined`: those of all others */
  async set(workspace: string, days: number | undefined): Promise<void> {
    await recordRetention(this.#client, workspace, days);
  }

  /** Returns how many events of a workspace are stored, from a time on and before another, in milliseconds. */
  async count(workspace: string, fromMs = BEFORE_EVENTS_MS, toMs: number): Promise<number> {
    const query_params = { workspace, fromMs, toMs };
    const result = await this.#client.query({ query: COUNT, query_params, format: 'JSONEachRow' });
    const [row] = await result.json<{ found: number }>();
    return row?.found ?? 0;
  }
}
