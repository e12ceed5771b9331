import { isDeepStrictEqual } from 'node:util';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { fittingIds, type ListPage, type SizedRow } from '../records/records.ts';
import { changeStored, insertInPlaceOf, Purge, type Replaced, versionAfter } from '../store/store.ts';
import type { PauseReason, StoredWebhook, Webhook, WebhookKind, WebhookState } from './webhook.ts';

/**
 * The webhooks that are not deleted, with their newest states and positions.
 *
 * @param which a condition on the keys of webhooks, so that ClickHouse reads no others
 * @param ofThem the same one on the keys of what is stored of them
 */
const storedWebhooks = (which: string, ofThem: string) => `
SELECT
  toString(webhooks.id) AS id, workspace_id AS workspace, kind, url, filter, batched, content, secret, previous_secret,
  toUnixTimestamp64Milli(previous_secret_until) AS previous_secret_until_ms,
  toUnixTimestamp64Milli(created_at) AS created_at_ms,
  toUnixTimestamp64Micro(changed_at) AS changed_at_us,
  states.state AS state, states.reason AS reason, toUnixTimestamp64Micro(states.since) AS since_us,
  positions.epoch AS epoch, positions.position AS position, positions.sending_to AS sending_to,
  positions.attempts AS attempts, toUnixTimestamp64Milli(positions.failing_since) AS failing_since_ms,
  -- Both have the clock of the instance that stored the row.
  greatest(if(positions.attempts > 0, toUnixTimestamp64Milli(positions.stored_at) - failing_since_ms, 0), 0) AS failing_ms,
  positions.log_lines AS log_lines
FROM (SELECT * FROM webhooks FINAL PREWHERE ${which} WHERE NOT is_deleted) AS webhooks
LEFT JOIN (SELECT * FROM webhook_states FINAL WHERE ${ofThem}) AS states ON states.webhook_id = webhooks.id
LEFT JOIN (SELECT * FROM webhook_positions FINAL WHERE ${ofThem}) AS positions ON positions.webhook_id = webhooks.id
ORDER BY created_at, id`;

/** Of a workspace; all of them where `ids` is empty. */
const OF_WORKSPACE = storedWebhooks(
  `workspace_id = {workspace:String} AND (empty({ids:Array(String)}) OR has({ids:Array(String)}, toString(id)))`,
  `webhook_id IN (SELECT id FROM webhooks WHERE workspace_id = {workspace:String})`,
);

const BY_IDS = storedWebhooks(
  'workspace_id IN {workspaces:Array(String)} AND id IN {ids:Array(UUID)}',
  'webhook_id IN {ids:Array(UUID)}',
);

/** How many are read by their ids at once, which stand in the address of the request. */
const IDS_MAX = 500;

const SIZES = `
SELECT toString(id) AS id, length(url) + length(filter) + length(content) AS bytes
FROM webhooks FINAL
WHERE workspace_id = {workspace:String} AND kind = {kind:String} AND NOT is_deleted
  AND (created_at, toString(id)) > (fromUnixTimestamp64Milli({after_ms:Int64}, 'UTC'), {after_id:String})
ORDER BY created_at, id
LIMIT {rows_max:UInt32}`;

const COUNT = `
SELECT toUInt32(count()) AS count FROM webhooks FINAL
WHERE workspace_id = {workspace:String} AND kind = {kind:String} AND NOT is_deleted`;

/**
 * Removes rows for good. `DELETE FROM` marks them in their parts, and while there are marks, ClickHouse reads every row for what
 * {@link KnownWebhooks} looks at each second.
 */
const remove = (table: string, which: string) =>
  `ALTER TABLE ${table} DELETE WHERE ${which} SETTINGS mutations_sync = 2`;

const OF_DELETED = 'webhook_id IN (SELECT id FROM webhooks WHERE is_deleted)';

/** Nothing of what is removed counts any more: the row of the deletion is newer than every other one of its webhook. */
const PURGE = [
  remove('webhooks', 'NOT is_deleted AND id IN (SELECT id FROM webhooks WHERE is_deleted)'),
  remove('webhook_states', OF_DELETED),
  ...['webhook_positions', 'webhook_leases', 'webhook_deliveries'].map(
    (table) => `DELETE FROM ${table} WHERE ${OF_DELETED}`,
  ),
  // Last, since the others are removed by it; and late, since a change or a delivery may have been under way.
  remove('webhooks', 'is_deleted AND changed_at < now64(6) + toIntervalDay(36525) - toIntervalHour(1)'),
] as const;

/** How much later than now the row of a deletion is dated, in milliseconds: no change that comes later is above it. */
const DELETED_LATER_MS = 36_525 * 86_400_000;

interface StoredRow {
  readonly id: string;
  readonly workspace: string;
  readonly kind: WebhookKind;
  readonly url: string;
  readonly filter: string;
  readonly batched: boolean;
  readonly content: string;
  readonly secret: string;
  readonly previous_secret: string;
  readonly previous_secret_until_ms: number;
  readonly created_at_ms: number;
  readonly changed_at_us: number;
  readonly state: string;
  readonly reason: string;
  readonly since_us: number;
  readonly epoch: number;
  readonly position: string;
  readonly sending_to: string;
  readonly attempts: number;
  readonly failing_since_ms: number;
  readonly failing_ms: number;
  readonly log_lines: number;
}

/** What is stored of webhooks, besides leases and positions. Its methods throw ClickHouse's errors. */
export class WebhookRegister {
  readonly #client: ClickHouseClient;
  readonly #purge: Purge;

  constructor(client: ClickHouseClient) {
    this.#client = client;
    this.#purge = new Purge(client, PURGE);
  }

  /** Returns the webhooks of a workspace, oldest first. */
  list(workspace: string): Promise<readonly StoredWebhook[]> {
    return this.#read(OF_WORKSPACE, { workspace, ids: [] });
  }

  /**
   * Returns webhooks of any workspaces, by their ids; it leaves out those that are not there.
   *
   * @param workspaces theirs, by their ids
   */
  async byIds(workspaces: ReadonlyMap<string, string>): Promise<ReadonlyMap<string, StoredWebhook>> {
    const found = new Map<string, StoredWebhook>();
    const all = [...workspaces];
    for (let read = 0; read < all.length; read += IDS_MAX) {
      const some = all.slice(read, read + IDS_MAX);
      const query_params = {
        ids: some.map(([id]) => id),
        workspaces: [...new Set(some.map(([, workspace]) => workspace))],
      };
      for (const stored of await this.#read(BY_IDS, query_params)) found.set(stored.webhook.id, stored);
    }
    return found;
  }

  /** Returns webhooks of a kind of a workspace, oldest first, and whether there are more. */
  async page(workspace: string, kind: WebhookKind, { limit, after }: Pick<ListPage, 'limit' | 'after'>) {
    const query_params = {
      ...{ workspace, kind },
      after_ms: after?.createdAtMs ?? 0,
      after_id: after?.id ?? '',
      rows_max: limit + 1,
    };
    const sizes = await this.#client.query({ query: SIZES, query_params, format: 'JSONEachRow' });
    const rows = await sizes.json<SizedRow>();
    const ids = fittingIds(rows, limit);
    return {
      webhooks: ids.length === 0 ? [] : await this.#read(OF_WORKSPACE, { workspace, ids }),
      hasMore: ids.length < rows.length,
    };
  }

  async count(workspace: string, kind: WebhookKind): Promise<number> {
    const result = await this.#client.query({ query: COUNT, query_params: { workspace, kind }, format: 'JSONEachRow' });
    return (await result.json<{ readonly count: number }>())[0]?.count ?? 0;
  }

  async find(workspace: string, id: string): Promise<StoredWebhook | undefined> {
    const [found] = await this.#read(OF_WORKSPACE, { workspace, ids: [id.toLowerCase()] });
    return found;
  }

  /** Stores a new one. */
  async save(webhook: Webhook): Promise<void> {
    await this.#insert(webhook, {});
  }

  /**
   * Changes a webhook as it is then, so that changes at once undo nothing of each other.
   *
   * @param change may be called several times
   * @returns what is stored; undefined if the workspace has no such webhook
   */
  async change(
    workspace: string,
    id: string,
    change: (webhook: Webhook) => Webhook,
  ): Promise<StoredWebhook | undefined> {
    return await changeStored(
      () => this.find(workspace, id),
      async ({ webhook, rows }) => {
        const changed = change(webhook);
        if (isDeepStrictEqual(changed, webhook)) return false;
        const row = { ...rowOf(changed), changed_at: versionAfter(rows.webhook) };
        await insertInPlaceOf(rows.webhook, this.#client, 'webhooks', row);
        return true;
      },
    );
  }

  /** Deletes it for good, whatever is stored of it afterwards. {@link purge} removes its rows. */
  async delete(webhook: Webhook): Promise<void> {
    const changedAtUs = (Date.now() + DELETED_LATER_MS) * 1_000;
    const without = { ...webhook, secret: '', previousSecret: '', filter: {}, content: {} };
    await this.#insert(without, { is_deleted: true, changed_at: changedAtUs });
  }

  /** Removes what is stored of deleted webhooks. It never throws: what remains is removed with the next one that is deleted. */
  async purge(): Promise<void> {
    await this.#purge.run();
  }

  /**
   * Changes the state as it is then. It is stored also if the state is the same: a deliverer that is about to pause the webhook must
   * not do so after it was resumed.
   */
  async setState(
    workspace: string,
    id: string,
    state: WebhookState['state'],
    reason: PauseReason | '',
  ): Promise<StoredWebhook | undefined> {
    let replaced: Replaced | undefined;
    return await changeStored(
      () => this.find(workspace, id),
      async ({ state: now, rows }) => {
        const isSame = now.state === state && now.reason === reason;
        if (isSame && replaced && rows.state.version > replaced.version) return false;
        replaced = rows.state;
        await this.#insertState(rows.state, { state, reason }, isSame);
        return true;
      },
    );
  }

  /**
   * Pauses a webhook that was delivered, unless its state was changed since.
   *
   * @param version of the state with which the delivery began
   * @returns whether it is paused for this reason
   */
  async pause({ workspace, id }: Webhook, version: number, reason: PauseReason): Promise<boolean> {
    const row = (await this.find(workspace, id))?.rows.state;
    if (row?.version === version) await this.#insertState(row, { state: 'paused', reason }, false);
    return (await this.find(workspace, id))?.state.reason === reason;
  }

  /** @param isSame whether it stays as it is: then it is so since the same time */
  async #insertState(
    replaced: Replaced,
    state: Pick<WebhookState, 'state' | 'reason'>,
    isSame: boolean,
  ): Promise<void> {
    const since = isSame ? replaced.version + 1 : versionAfter(replaced);
    await insertInPlaceOf(replaced, this.#client, 'webhook_states', { webhook_id: replaced.id, ...state, since });
  }

  async #insert(webhook: Webhook, more: Readonly<Record<string, unknown>>): Promise<void> {
    const values = [{ ...rowOf(webhook), ...more }];
    await this.#client.insert({ table: 'webhooks', values, format: 'JSONEachRow' });
  }

  async #read(query: string, query_params: Record<string, unknown>): Promise<readonly StoredWebhook[]> {
    const result = await this.#client.query({ query, query_params, format: 'JSONEachRow' });
    return (await result.json<StoredRow>()).map(asStored);
  }
}

function rowOf(webhook: Webhook) {
  return {
    ...{ workspace_id: webhook.workspace, id: webhook.id, kind: webhook.kind, url: webhook.url },
    ...{ filter: JSON.stringify(webhook.filter), batched: webhook.batched, content: JSON.stringify(webhook.content) },
    ...{ secret: webhook.secret, previous_secret: webhook.previousSecret },
    ...{ previous_secret_until: webhook.previousSecretUntilMs, created_at: webhook.createdAtMs, is_deleted: false },
  };
}

function asStored(row: StoredRow): StoredWebhook {
  // The first change of a state replaces none.
  const sinceUs = row.state === '' ? row.created_at_ms * 1_000 : row.since_us;
  const sinceMs = Math.floor(sinceUs / 1_000);
  const rowOfVersion = (version: number) => ({ id: row.id, version });
  return {
    webhook: {
      ...{ id: row.id, workspace: row.workspace, kind: row.kind, url: row.url, batched: row.batched },
      filter: JSON.parse(row.filter) as Record<string, string>,
      // Rows of before there were kinds have none.
      content: JSON.parse(row.content || '{}') as Record<string, unknown>,
      secret: row.secret,
      previousSecret: row.previous_secret,
      previousSecretUntilMs: row.previous_secret_until_ms,
      createdAtMs: row.created_at_ms,
    },
    state:
      row.state === 'paused'
        ? { state: 'paused', reason: row.reason as PauseReason, sinceMs }
        : { state: 'active', reason: '', sinceMs },
    rows: { webhook: rowOfVersion(row.changed_at_us), state: rowOfVersion(sinceUs) },
    progress:
      row.position === ''
        ? undefined
        : {
            ...{ epoch: row.epoch, position: row.position, sendingTo: row.sending_to, attempts: row.attempts },
            ...{ failingMs: row.failing_ms, logLines: row.log_lines },
          },
    failingSinceMs: row.failing_since_ms,
  };
}
