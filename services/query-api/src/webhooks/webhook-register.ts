import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { PauseReason, StoredWebhook, Webhook, WebhookState } from './webhook.ts';

/** The webhooks that are not deleted, with their newest states and positions. The conditions are true for an empty parameter. */
const STORED_WEBHOOKS = `
SELECT
  toString(webhooks.id) AS id, workspace_id AS workspace, url, filter, batched, secret, previous_secret,
  toUnixTimestamp64Milli(previous_secret_until) AS previous_secret_until_ms,
  toUnixTimestamp64Milli(created_at) AS created_at_ms,
  states.state AS state, states.reason AS reason, toUnixTimestamp64Milli(states.since) AS since_ms,
  positions.epoch AS epoch, positions.position AS position, positions.sending_to AS sending_to,
  positions.attempts AS attempts, toUnixTimestamp64Milli(positions.failing_since) AS failing_since_ms,
  positions.log_lines AS log_lines
FROM webhooks FINAL
LEFT JOIN (SELECT * FROM webhook_states FINAL) AS states ON states.webhook_id = webhooks.id
LEFT JOIN (SELECT * FROM webhook_positions FINAL) AS positions ON positions.webhook_id = webhooks.id
WHERE NOT is_deleted
  AND ({workspace:String} = '' OR workspace_id = {workspace:String})
  AND ({id:String} = '' OR toString(webhooks.id) = {id:String})
ORDER BY created_at, id`;

/** Nothing of what is removed counts any more: the row of the deletion is newer than every other one of its webhook. */
const PURGE = [
  'DELETE FROM webhooks WHERE NOT is_deleted AND id IN (SELECT id FROM webhooks WHERE is_deleted)',
  ...['webhook_states', 'webhook_positions', 'webhook_leases', 'webhook_deliveries'].map(
    (table) => `DELETE FROM ${table} WHERE webhook_id IN (SELECT id FROM webhooks WHERE is_deleted)`,
  ),
  // Last, since the others are removed by it; and late, since a change or a delivery may have been under way.
  'DELETE FROM webhooks WHERE is_deleted AND changed_at < now64(6) + toIntervalDay(36525) - toIntervalHour(1)',
] as const;

/** How much later than now the row of a deletion is dated, in milliseconds: no change that comes later is above it. */
const DELETED_LATER_MS = 36_525 * 86_400_000;

interface StoredRow {
  readonly id: string;
  readonly workspace: string;
  readonly url: string;
  readonly filter: string;
  readonly batched: boolean;
  readonly secret: string;
  readonly previous_secret: string;
  readonly previous_secret_until_ms: number;
  readonly created_at_ms: number;
  readonly state: string;
  readonly reason: string;
  readonly since_ms: number;
  readonly epoch: number;
  readonly position: string;
  readonly sending_to: string;
  readonly attempts: number;
  readonly failing_since_ms: number;
  readonly log_lines: number;
}

/** What is stored of webhooks, besides leases and positions. Its methods throw ClickHouse's errors. */
export class WebhookRegister {
  readonly #client: ClickHouseClient;

  constructor(client: ClickHouseClient) {
    this.#client = client;
  }

  /** Returns the webhooks of a workspace, oldest first; without a workspace those of all. */
  list(workspace = ''): Promise<readonly StoredWebhook[]> {
    return this.#read(workspace, '');
  }

  async find(workspace: string, id: string): Promise<StoredWebhook | undefined> {
    const [found] = await this.#read(workspace, id.toLowerCase());
    return found;
  }

  async save(webhook: Webhook): Promise<void> {
    await this.#insert(webhook, false);
  }

  /** Deletes it for good, whatever is stored of it afterwards. {@link purge} removes its rows. */
  async delete(webhook: Webhook): Promise<void> {
    await this.#insert({ ...webhook, secret: '', previousSecret: '', filter: {} }, true);
  }

  /** Removes what is stored of deleted webhooks. It may be repeated. */
  async purge(): Promise<void> {
    for (const query of PURGE) await this.#client.command({ query });
  }

  async setState(id: string, state: WebhookState['state'], reason: PauseReason | ''): Promise<void> {
    const values = [{ webhook_id: id, state, reason }];
    await this.#client.insert({ table: 'webhook_states', values, format: 'JSONEachRow' });
  }

  async #insert(webhook: Webhook, isDeleted: boolean): Promise<void> {
    const row = {
      workspace_id: webhook.workspace,
      id: webhook.id,
      url: webhook.url,
      filter: JSON.stringify(webhook.filter),
      batched: webhook.batched,
      secret: webhook.secret,
      previous_secret: webhook.previousSecret,
      previous_secret_until: webhook.previousSecretUntilMs,
      created_at: webhook.createdAtMs,
      is_deleted: isDeleted,
      ...(isDeleted && { changed_at: (Date.now() + DELETED_LATER_MS) * 1_000 }),
    };
    await this.#client.insert({ table: 'webhooks', values: [row], format: 'JSONEachRow' });
  }

  async #read(workspace: string, id: string): Promise<readonly StoredWebhook[]> {
    const query_params = { workspace, id };
    const result = await this.#client.query({ query: STORED_WEBHOOKS, query_params, format: 'JSONEachRow' });
    return (await result.json<StoredRow>()).map(asStored);
  }
}

function asStored(row: StoredRow): StoredWebhook {
  return {
    webhook: {
      ...{ id: row.id, workspace: row.workspace, url: row.url, batched: row.batched, secret: row.secret },
      filter: JSON.parse(row.filter) as Record<string, string>,
      previousSecret: row.previous_secret,
      previousSecretUntilMs: row.previous_secret_until_ms,
      createdAtMs: row.created_at_ms,
    },
    state:
      row.state === 'paused'
        ? { state: 'paused', reason: row.reason as PauseReason, sinceMs: row.since_ms }
        : { state: 'active', reason: '', sinceMs: row.state === '' ? row.created_at_ms : row.since_ms },
    progress:
      row.position === ''
        ? undefined
        : {
            ...{ epoch: row.epoch, position: row.position, sendingTo: row.sending_to, attempts: row.attempts },
            ...{ failingSinceMs: row.failing_since_ms, logLines: row.log_lines },
          },
  };
}
