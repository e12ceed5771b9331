import { randomUUID } from 'node:crypto';
import { Problem } from '@sluice/shared/http/problem';
import type { ListPage } from '../records/records.ts';
import { asUnavailable, SerialQueue, unavailable } from '../store/store.ts';
import type { Message } from './http-sender.ts';
import { newSecret, ROTATION_MS, type StoredWebhook, secretsOf, type Webhook, type WebhookKind } from './webhook.ts';
import type { Webhooks } from './webhooks-component.ts';

/** What is particular to the webhooks of a kind, for those who manage them. */
export interface ManagedKind<Members extends object> {
  readonly kind: WebhookKind;
  /** `webhook`, as errors call one. */
  readonly singular: string;
  /** How many a workspace may have. */
  readonly max: number;
  /** Returns where a new one begins. */
  readonly firstPosition: (webhook: Webhook) => Promise<string>;
  /** Returns what its responses show besides what those of all kinds do. */
  readonly membersOf: (stored: StoredWebhook) => Members;
  /** Returns the body of a test. */
  readonly testBody: (webhook: Webhook, now: Date) => object;
}

export interface OperationsOptions<Members extends object> {
  readonly webhooks: Pick<Webhooks, 'register' | 'leases' | 'positions' | 'log' | 'sender' | 'places'>;
  readonly kind: ManagedKind<Members>;
}

/** What clients set of a webhook. */
type Given = Pick<Webhook, 'url'> & Partial<Pick<Webhook, 'filter' | 'batched' | 'content'>>;

/** What a change leaves out stays as it is, also of the content. */
type Change = { readonly [Name in keyof Given]?: Given[Name] | undefined } & {
  readonly state?: 'active' | 'paused' | undefined;
};

/** What the responses of all kinds show. */
interface CommonRecord {
  readonly id: string;
  readonly url: string;
  readonly state: 'active' | 'paused';
  readonly pausedBecause: string | null;
  readonly stateSince: string;
  readonly failedAttempts: number;
  readonly failingSince: string | null;
  readonly previousSecretUntil: string | null;
  readonly createdAt: string;
}

/** What clients do with the webhooks of a kind of their workspace. Its methods throw Problems, `not_found` among them. */
export class WebhookOperations<Members extends object> {
  readonly #options: OperationsOptions<Members>;
  /** Creates those of a workspace one after the other, so that each sees how many there are. */
  readonly #creations = new SerialQueue();

  constructor(options: OperationsOptions<Members>) {
    this.#options = options;
  }

  /** Returns a page of them, and the members of its response besides. */
  async list(workspace: string, page: ListPage) {
    const { webhooks, kind } = this.#options;
    const { webhooks: found, hasMore } = await asUnavailable(webhooks.register.page(workspace, kind.kind, page));
    const records = found.map((one) => this.#recordOf(one));
    return { [`${kind.singular}s`]: records, ...page.membersAfter(found.at(-1)?.webhook, hasMore) };
  }

  async find(workspace: string, id: string): Promise<CommonRecord & Members> {
    return this.#recordOf(await this.require(workspace, id));
  }

  /** What it sends begins now. */
  async create(workspace: string, given: Given): Promise<CommonRecord & Members & { readonly secret: string }> {
    return await this.#creations.run(workspace, () => this.#create(workspace, given));
  }

  async #create(workspace: string, given: Given) {
    const { webhooks, kind } = this.#options;
    const { kind: kindOf, singular, max } = kind;
    if ((await asUnavailable(webhooks.register.count(workspace, kindOf))) >= max) {
      throw new Problem('invalid_request', `The workspace has ${max} ${singular}s already; delete one.`, {
        errors: [{ path: `${singular}s`, code: 'too_many', message: `must be ${max} at most` }],
      });
    }
    const webhook: Webhook = {
      ...{ id: randomUUID(), workspace, kind: kindOf, filter: {}, batched: false, content: {}, ...given },
      ...{ secret: newSecret(), previousSecret: '', previousSecretUntilMs: 0, createdAtMs: Date.now() },
    };
    const position = await asUnavailable(kind.firstPosition(webhook));
    await this.#storePosition(webhook, 0, position);
    await asUnavailable(webhooks.register.save(webhook));
    return { ...(await this.find(workspace, webhook.id)), secret: webhook.secret };
  }

  async change(workspace: string, id: string, { state, ...change }: Change): Promise<CommonRecord & Members> {
    await this.require(workspace, id);
    const { register } = this.#options.webhooks;
    const changed = (webhook: Webhook) => ({
      ...{ ...webhook, ...given(change) },
      content: { ...webhook.content, ...given(change.content ?? {}) },
    });
    const stored = this.#found(await asUnavailable(register.change(workspace, id, changed)));
    if (state === 'paused') await asUnavailable(register.setState(workspace, id, 'paused', 'client'));
    if (state === 'active') await this.#resume(stored);
    // What failed says nothing of the new address or the new filter.
    else if (Object.keys(change).length > 0) await this.#forgetFailures(stored);
    return await this.find(workspace, id);
  }

  async delete(workspace: string, id: string): Promise<void> {
    const { webhook } = await this.require(workspace, id);
    const { register } = this.#options.webhooks;
    await asUnavailable(register.delete(webhook));
    void register.purge();
  }

  /** The secret before signs as well for a day. */
  async rotate(workspace: string, id: string): Promise<CommonRecord & Members & { readonly secret: string }> {
    await this.require(workspace, id);
    const secret = newSecret();
    const previousSecretUntilMs = Date.now() + ROTATION_MS;
    const rotated = (webhook: Webhook) =>
      [webhook.secret, webhook.previousSecret].includes(secret)
        ? webhook
        : { ...webhook, secret, previousSecret: webhook.secret, previousSecretUntilMs };
    const stored = this.#found(await asUnavailable(this.#options.webhooks.register.change(workspace, id, rotated)));
    return { ...this.#recordOf(stored), secret };
  }

  /** A paused webhook goes on where it stopped; one that waits for its next attempt makes it now. */
  async resume(workspace: string, id: string): Promise<CommonRecord & Members> {
    await this.#resume(await this.require(workspace, id));
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
      const stored = await this.require(workspace, id);
      onFound();
      return await this.#test(stored, signal);
    } finally {
      free();
    }
  }

  async #test({ webhook }: StoredWebhook, signal: AbortSignal): Promise<object> {
    const { webhooks, kind } = this.#options;
    const { sender, log } = webhooks;
    const now = Date.now();
    const body = JSON.stringify(kind.testBody(webhook, new Date(now)));
    const message: Message = { id: `msg_${randomUUID()}`, body };
    const attempt = await sender.send(webhook.url, message, secretsOf(webhook, now), signal);
    const { isDelivered: delivered, status, durationMs, error } = attempt;
    log.add(webhook.id, {
      ...{ at_ms: now, message_id: message.id, type: 'test', events: 0, attempt: 1 },
      ...{ status, duration_ms: durationMs, error },
    });
    return { id: message.id, delivered, status: status || null, durationMs, error: error || null };
  }

  /** Returns its last attempts, newest first. */
  async deliveries(workspace: string, id: string): Promise<readonly object[]> {
    const { webhook } = await this.require(workspace, id);
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
    if (isFailing) await this.begin(webhook, {});
    return isFailing;
  }

  /** Takes the webhook from the instance that delivers it; the next one begins from here, without failures. */
  async begin({ workspace, id }: Webhook, change: { readonly position?: string }): Promise<void> {
    const { leases, register, positions } = this.#options.webhooks;
    const lease = await asUnavailable(leases.take(id));
    // Where it goes on from is what the instance before has stored last: a message that it sends after this must not be another one.
    if (change.position === undefined) await asUnavailable(lease.untilAlone());
    const stored = await asUnavailable(register.find(workspace, id));
    if (!stored?.progress) throw this.#notFound();
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

  /** Returns the one with an id, of the kind. */
  async require(workspace: string, id: string): Promise<StoredWebhook> {
    return this.#found(await asUnavailable(this.#options.webhooks.register.find(workspace, id)));
  }

  /** @throws {Problem} `not_found` */
  #found(stored: StoredWebhook | undefined): StoredWebhook {
    if (stored?.webhook.kind !== this.#options.kind.kind) throw this.#notFound();
    return stored;
  }

  #notFound(): Problem {
    return new Problem('not_found', `The workspace has no such ${this.#options.kind.singular}.`);
  }

  #recordOf(stored: StoredWebhook): CommonRecord & Members {
    const time = (ms: number | undefined) => (ms ? new Date(ms).toISOString() : null);
    const { webhook, state, progress, failingSinceMs } = stored;
    const { id, url, previousSecretUntilMs, createdAtMs } = webhook;
    return {
      ...{ id, url, ...this.#options.kind.membersOf(stored) },
      ...{ state: state.state, pausedBecause: state.reason || null },
      stateSince: new Date(state.sinceMs).toISOString(),
      failedAttempts: progress?.attempts ?? 0,
      failingSince: time(failingSinceMs),
      previousSecretUntil: previousSecretUntilMs > Date.now() ? time(previousSecretUntilMs) : null,
      createdAt: new Date(createdAtMs).toISOString(),
    };
  }
}

/** Leaves out members without a value. */
function given<Value extends object>(value: Value): { [Name in keyof Value]: Exclude<Value[Name], undefined> } {
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(members) as { [Name in keyof Value]: Exclude<Value[Name], undefined> };
}
