import { randomUUID } from 'node:crypto';
import { Problem } from '@sluice/shared/http/problem';
import type { ListPage } from '../records/records.ts';
import {
  asUnavailable,
  type QueryRunner,
  RequestStore,
  SerialQueue,
  type Sql,
  type Stores,
  type Tables,
  unavailable,
} from '../store/store.ts';
import { decodePosition, encodePosition, type StreamId, type StreamPosition } from '../stream/stream.ts';
import { newSecret, ROTATION_MS, type StoredWebhook, secretsOf, type Webhook } from './webhook.ts';
import type { NewWebhook, WebhookChange } from './webhook-request.ts';
import { positionNow, type StreamSource } from './webhook-stream.ts';
import type { Webhooks } from './webhooks-component.ts';

export interface OperationsOptions {
  readonly webhooks: Webhooks;
  readonly streams: StreamSource;
  readonly queryRunner: QueryRunner;
  readonly stores: Stores;
  readonly perWorkspaceMax: number;
}

/** A webhook as its responses show it. */
export interface WebhookRecord {
  readonly id: string;
  readonly url: string;
  readonly filter: Readonly<Record<string, string>>;
  readonly batched: boolean;
  readonly state: 'active' | 'paused';
  readonly pausedBecause: string | null;
  readonly stateSince: string;
  readonly failedAttempts: number;
  readonly failingSince: string | null;
  readonly previousSecretUntil: string | null;
  readonly createdAt: string;
}

/** What clients do with the webhooks of their workspace. Its methods throw Problems, `not_found` among them. */
export class WebhookOperations {
  readonly #options: OperationsOptions;
  /** Creates those of a workspace one after the other, so that each sees how many there are. */
  readonly #creations = new SerialQueue();

  constructor(options: OperationsOptions) {
    this.#options = options;
  }

  /** Returns a page of them, and the members of its response besides. */
  async list(workspace: string, page: ListPage) {
    const { webhooks, hasMore } = await asUnavailable(this.#options.webhooks.register.page(workspace, page));
    return { webhooks: webhooks.map(recordOf), ...page.membersAfter(webhooks.at(-1)?.webhook, hasMore) };
  }

  async find(workspace: string, id: string): Promise<WebhookRecord> {
    return recordOf(await this.#require(workspace, id));
  }

  /** Its events begin now. */
  async create(workspace: string, given: NewWebhook): Promise<WebhookRecord & { readonly secret: string }> {
    return await this.#creations.run(workspace, () => this.#create(workspace, given));
  }

  async #create(workspace: string, given: NewWebhook): Promise<WebhookRecord & { readonly secret: string }> {
    const { webhooks, streams, perWorkspaceMax } = this.#options;
    if ((await asUnavailable(webhooks.register.count(workspace))) >= perWorkspaceMax) {
      const detail = `The workspace has ${perWorkspaceMax} webhooks already; delete one.`;
      throw new Problem('invalid_request', detail, {
        errors: [{ path: 'webhooks', code: 'too_many', message: `must be ${perWorkspaceMax} at most` }],
      });
    }
    const webhook: Webhook = {
      ...{ id: randomUUID(), workspace, ...given, secret: newSecret() },
      ...{ previousSecret: '', previousSecretUntilMs: 0, createdAtMs: Date.now() },
    };
    const position = await asUnavailable(positionNow(streams, webhook));
    await this.#storePosition(webhook, 0, position);
    await asUnavailable(webhooks.register.save(webhook));
    return { ...(await this.find(workspace, webhook.id)), secret: webhook.secret };
  }

  async change(workspace: string, id: string, { state, ...change }: WebhookChange): Promise<WebhookRecord> {
    const { register } = this.#options.webhooks;
    const changed = (webhook: Webhook) => ({ ...webhook, ...given(change) });
    const stored = found(await asUnavailable(register.change(workspace, id, changed)));
    if (state === 'paused') await asUnavailable(register.setState(workspace, id, 'paused', 'client'));
    if (state === 'active') await this.#resume(stored);
    // What failed says nothing of the new address or the new filter.
    else if (Object.keys(change).length > 0) await this.#forgetFailures(stored);
    return await this.find(workspace, id);
  }

  async delete(workspace: string, id: string): Promise<void> {
    const { webhook } = await this.#require(workspace, id);
    const { register } = this.#options.webhooks;
    await asUnavailable(register.delete(webhook));
    void register.purge();
  }

  /** The secret before signs as well for a day. */
  async rotate(workspace: string, id: string): Promise<WebhookRecord & { readonly secret: string }> {
    const secret = newSecret();
    const previousSecretUntilMs = Date.now() + ROTATION_MS;
    const rotated = (webhook: Webhook) =>
      [webhook.secret, webhook.previousSecret].includes(secret)
        ? webhook
        : { ...webhook, secret, previousSecret: webhook.secret, previousSecretUntilMs };
    const stored = found(await asUnavailable(this.#options.webhooks.register.change(workspace, id, rotated)));
    return { ...recordOf(stored), secret };
  }

  /** A paused webhook goes on where it stopped; one that waits for its next attempt makes it now. */
  async resume(workspace: string, id: string): Promise<WebhookRecord> {
    await this.#resume(await this.#require(workspace, id));
    return await this.find(workspace, id);
  }

  /**
   * Sends a message that has no event, once, whatever the state is. Few tests of a workspace are under way at once.
   *
   * @param signal ends the attempt
   * @param onFound called when nothing more is read, and the receiver is asked
   */
  async test(workspace: string, id: string, signal: AbortSignal, onFound: () => void): Promise<object> {
    const free = this.#options.webhooks.places.forTest(workspace);
    try {
      const stored = await this.#require(workspace, id);
      onFound();
      return await this.#test(stored, signal);
    } finally {
      free();
    }
  }

  async #test({ webhook }: StoredWebhook, signal: AbortSignal): Promise<object> {
    const { sender, log } = this.#options.webhooks;
    const now = Date.now();
    const message = {
      id: `msg_${randomUUID()}`,
      body: JSON.stringify({ type: 'test', timestamp: new Date(now).toISOString(), data: { webhook: webhook.id } }),
    };
    const attempt = await sender.send(webhook.url, message, secretsOf(webhook, now), signal);
    const { isDelivered: delivered, status, durationMs, error } = attempt;
    log.add(webhook.id, {
      ...{ at_ms: now, message_id: message.id, type: 'test', events: 0, attempt: 1 },
      ...{ status, duration_ms: durationMs, error },
    });
    return { id: message.id, delivered, status: status || null, durationMs, error: error || null };
  }

  /** Delivers again what was received since a time, in milliseconds, and everything after it; an active webhook stays active. */
  async replay(workspace: string, id: string, fromMs: number): Promise<WebhookRecord> {
    const { streams, queryRunner, stores } = this.#options;
    const { webhook } = await this.#require(workspace, id);
    const now = decodePosition(await asUnavailable(positionNow(streams, webhook)));
    if (!now) throw new Error('a stream begins with a malformed position');
    const store = new RequestStore(stores);
    const rows = await queryRunner.all({
      ...({ kind: 'webhook_replay', pool: 'reports', workspace, store, signal: undefined } as const),
      statement: (tables) => firstBlocksQuery(tables, fromMs),
    });
    if (now.origin && (await store.current()).name !== now.origin.server) throw unavailable();
    const blocks = new Map(rows.map(([shard, block]) => [shard as number, block as number]));
    const position = positionBefore(blocks, now);
    await this.#begin(webhook, { position });
    return await this.find(workspace, id);
  }

  /** Returns its last attempts, newest first. */
  async deliveries(workspace: string, id: string): Promise<readonly object[]> {
    const { webhook } = await this.#require(workspace, id);
    const lines = await asUnavailable(this.#options.webhooks.log.read(webhook.id));
    return lines.map(({ at_ms, message_id, type, events, attempt, status, duration_ms, error }) => ({
      ...{ id: message_id, at: new Date(at_ms).toISOString(), type, events, attempt },
      ...{ status: status || null, durationMs: duration_ms, error: error || null },
    }));
  }

  async #resume(stored: StoredWebhook): Promise<void> {
    const wasFailing = await this.#forgetFailures(stored);
    const { workspace, id } = stored.webhook;
    if (wasFailing || stored.state.state === 'paused')
      await asUnavailable(this.#options.webhooks.register.setState(workspace, id, 'active', ''));
  }

  /** The next attempt comes at once, and is the first one. Returns whether there were failures. */
  async #forgetFailures({ webhook, progress }: StoredWebhook): Promise<boolean> {
    const isFailing = progress !== undefined && progress.attempts > 0;
    if (isFailing) await this.#begin(webhook, {});
    return isFailing;
  }

  /** Takes the webhook from the instance that delivers it; the next one begins from here, without failures. */
  async #begin({ workspace, id }: Webhook, change: { readonly position?: string }): Promise<void> {
    const { leases, register, positions } = this.#options.webhooks;
    const lease = await asUnavailable(leases.take(id));
    const stored = await asUnavailable(register.find(workspace, id));
    if (!stored?.progress) throw notFound();
    const { position = stored.progress.position } = change;
    const sendingTo = change.position === undefined ? stored.progress.sendingTo : '';
    const { logLines } = stored.progress;
    const progress = { epoch: lease.epoch, position, sendingTo, attempts: 0, failingMs: 0, logLines };
    await asUnavailable(positions.store(id, progress));
    // It may have taken longer than the lease: then an instance may have begun from the position before.
    if (!(await asUnavailable(lease.isNewest()))) throw unavailable();
    await asUnavailable(lease.release());
  }

  async #storePosition({ id }: Webhook, epoch: number, position: string): Promise<void> {
    const { positions } = this.#options.webhooks;
    const progress = { epoch, position, sendingTo: '', attempts: 0, failingMs: 0, logLines: 0 };
    await asUnavailable(positions.store(id, progress));
  }

  async #require(workspace: string, id: string): Promise<StoredWebhook> {
    return found(await asUnavailable(this.#options.webhooks.register.find(workspace, id)));
  }
}

/** @throws {Problem} `not_found` */
function found(stored: StoredWebhook | undefined): StoredWebhook {
  if (!stored) throw notFound();
  return stored;
}

function recordOf({ webhook, state, progress, failingSinceMs }: StoredWebhook): WebhookRecord {
  const time = (ms: number | undefined) => (ms ? new Date(ms).toISOString() : null);
  const { id, url, filter, batched, previousSecretUntilMs, createdAtMs } = webhook;
  return {
    ...{ id, url, filter, batched, state: state.state, pausedBecause: state.reason || null },
    stateSince: new Date(state.sinceMs).toISOString(),
    failedAttempts: progress?.attempts ?? 0,
    failingSince: time(failingSinceMs),
    previousSecretUntil: previousSecretUntilMs > Date.now() ? time(previousSecretUntilMs) : null,
    createdAt: new Date(createdAtMs).toISOString(),
  };
}

/** Leaves out members without a value. */
function given<Value extends object>(value: Value): { [Name in keyof Value]: Exclude<Value[Name], undefined> } {
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(members) as { [Name in keyof Value]: Exclude<Value[Name], undefined> };
}

function notFound(): Problem {
  return new Problem('not_found', 'The workspace has no such webhook.');
}

/** A key before that of every event of a block. */
const BEFORE_BLOCK = { timestampMs: Date.UTC(1899, 11, 31), uuid: '00000000-0000-0000-0000-000000000000' } as const;

/** Returns the query for the first block on each server with an event of the workspace that was received since a time. */
export function firstBlocksQuery(tables: Tables, sinceMs: number): Sql {
  return {
    sql: `
SELECT shard, min(block)
FROM ${tables.eventsOfAllWorkspaces}
WHERE workspace_id = {workspace:String} AND received_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC')
GROUP BY shard`,
    params: { since: sinceMs },
  };
}

/**
 * Returns the id of the position before some blocks.
 *
 * @param blocks the first one of each server that has any
 * @param now where the order of storage ends
 */
export function positionBefore(blocks: ReadonlyMap<number, number>, now: StreamId): string {
  const position: StreamPosition = new Map(
    [...now.position].map(([shard, place]) => {
      const block = blocks.get(shard);
      return [shard, block === undefined ? place : { block, ...BEFORE_BLOCK }];
    }),
  );
  // What was sent up to there is not known, so that another server could not go on.
  return encodePosition(position, now.sentAtMs, now.origin && { ...now.origin, throughMs: 0 });
}
