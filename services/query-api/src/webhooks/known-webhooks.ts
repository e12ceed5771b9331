import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { PauseReason } from './webhook.ts';

/** The newest number of a part: each insert has a higher one. ClickHouse answers from its list of parts, and reads no rows. */
const newestPart = (table: string) => `(
    SELECT max(greatest(toUInt64OrZero(splitByChar('_', _part)[3]), toUInt64OrZero(splitByChar('_', _part)[5])))
    FROM (SELECT _part, count() FROM ${table} GROUP BY _part)
  )`;

/** On replicas a part with a lower number may come later. What tells sets of parts apart also changes when parts are merged. */
const setOfParts = (table: string) => `(
    SELECT toUInt32(groupBitXor(cityHash64(_part)) % 4294967296)
    FROM (SELECT _part, count() FROM ${table} GROUP BY _part)
  )`;

const markOf = (parts: (table: string) => string) => `
SELECT
  [${parts('webhooks')}, ${parts('webhook_states')}] AS parts,
  toUnixTimestamp64Milli(now64(3)) AS now_ms`;

/** The webhooks that were changed since a time, deleted ones among them. The row of a deletion is dated a century later. */
const CHANGED = `
WITH
  fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC') AS begin,
  changed AS (
    SELECT id FROM webhooks WHERE changed_at >= begin
    UNION ALL
    SELECT webhook_id FROM webhook_states WHERE since >= begin
  )
SELECT
  toString(webhooks.id) AS id, webhooks.workspace AS workspace, webhooks.deleted AS is_deleted,
  states.newest_state AS state, states.newest_reason AS reason
FROM (
  SELECT id, any(workspace_id) AS workspace, argMax(is_deleted, changed_at) AS deleted
  FROM webhooks WHERE id IN (SELECT id FROM changed) GROUP BY id
) AS webhooks
LEFT JOIN (
  SELECT webhook_id, argMax(state, since) AS newest_state, argMax(reason, since) AS newest_reason
  FROM webhook_states WHERE webhook_id IN (SELECT id FROM changed) GROUP BY webhook_id
) AS states ON states.webhook_id = webhooks.id`;

/** How long before the last look a change may have been dated that came after it, in milliseconds: its insert was slow. */
const LATE_MS = 600_000;

/** How long ago the last look may be, in milliseconds: the rows of a deletion are removed after an hour. */
const FORGOTTEN_MS = 1_800_000;

interface Mark {
  readonly parts: readonly number[];
  readonly now_ms: number;
}

interface ChangedRow {
  readonly id: string;
  readonly workspace: string;
  readonly is_deleted: boolean;
  readonly state: string;
  readonly reason: string;
}

/**
 * The webhooks of all workspaces, as an instance that delivers knows them: whose they are, and whether they are paused. A look
 * reads what changed since the one before, and nothing where nothing did, so its cost does not grow with the number of webhooks.
 */
export class KnownWebhooks {
  readonly #client: ClickHouseClient;
  readonly #readMark: string;
  readonly #active = new Map<string, string>();
  readonly #paused = new Map<string, PauseReason>();
  #mark: Mark | undefined;
  /** On the clock of `performance`. */
  #lookedAtMs = 0;

  /** @param areReplicated whether ClickHouse replicates the tables. Default: false */
  constructor(client: ClickHouseClient, areReplicated = false) {
    this.#client = client;
    this.#readMark = markOf(areReplicated ? setOfParts : newestPart);
  }

  /** The workspaces of those that are delivered, by their ids. */
  get active(): ReadonlyMap<string, string> {
    return this.#active;
  }

  /** Why the others are paused, by their ids. */
  get paused(): ReadonlyMap<string, PauseReason> {
    return this.#paused;
  }

  /** Returns the ids of those that may have changed since the last look. @throws ClickHouse's errors; the next look begins anew */
  async look(): Promise<readonly string[]> {
    const before = this.#mark;
    this.#mark = undefined;
    const [mark] = await this.#rows<Mark>(this.#readMark, {});
    if (!mark) throw new Error('ClickHouse returned no row');
    const isSame = before?.parts.every((part, index) => part === mark.parts[index]) ?? false;
    // A clock that is set back dates changes before the last look.
    const isOld = performance.now() - this.#lookedAtMs > FORGOTTEN_MS;
    const isKnown = before !== undefined && before.now_ms <= mark.now_ms && !isOld;
    const begunMs = performance.now();
    const changed = isSame && isKnown ? [] : await this.#changed(isKnown ? before.now_ms - LATE_MS : 0);
    if (!isKnown) for (const known of [this.#active, this.#paused]) known.clear();
    for (const row of changed) this.#note(row);
    this.#mark = isSame && isKnown ? before : mark;
    this.#lookedAtMs = begunMs;
    return changed.map(({ id }) => id);
  }

  #changed(sinceMs: number): Promise<ChangedRow[]> {
    return this.#rows<ChangedRow>(CHANGED, { since_ms: Math.max(0, sinceMs) });
  }

  #note({ id, workspace, is_deleted, state, reason }: ChangedRow): void {
    for (const known of [this.#active, this.#paused]) known.delete(id);
    if (is_deleted) return;
    if (state === 'paused') this.#paused.set(id, reason as PauseReason);
    else this.#active.set(id, workspace);
  }

  async #rows<Row>(query: string, query_params: Record<string, unknown>): Promise<Row[]> {
    const result = await this.#client.query({ query, query_params, format: 'JSONEachRow' });
    return await result.json<Row>();
  }
}
