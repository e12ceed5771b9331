import { createHash } from 'node:crypto';
import type { Logger } from '@sluice/shared/base/log';
import { sleep } from '@sluice/shared/base/retry';
import { ErrorCodes } from '@sluice/shared/clickhouse/error-codes';
import { Deliverer, type DelivererOptions } from './deliverer.ts';
import type { KnownWebhooks } from './known-webhooks.ts';
import type { StoredWebhook } from './webhook.ts';
import type { HeldLease, NewestLease, WebhookLeases } from './webhook-leases.ts';
import type { WebhookMetrics, WebhookReadings } from './webhook-metrics.ts';
import type { WebhookRegister } from './webhook-register.ts';

/** How often webhooks and leases are read, in milliseconds. */
const POLL_MS_MAX = 1_000;

/** The first writer creates the database and its tables: until then there are no webhooks. */
const NOT_CREATED = new ErrorCodes('UNKNOWN_TABLE', 'UNKNOWN_DATABASE');

export interface DeliveriesOptions {
  readonly known: KnownWebhooks;
  readonly register: WebhookRegister;
  readonly leases: WebhookLeases;
  /** How long a lease is in force, in milliseconds. It is renewed after a third of that. */
  readonly leaseMs: number;
  readonly metrics: WebhookMetrics;
  readonly logger: Logger;
  readonly deliverer: Omit<DelivererOptions, 'pause' | 'metrics' | 'logger'>;
}

/**
 * The webhooks that this instance delivers. Each of the instances that deliver claims those webhooks for which its hash is the
 * highest, and gives up those for which it no longer is; so they share them, and one that comes or goes moves few.
 */
export class WebhookDeliveries {
  readonly #options: DeliveriesOptions;
  readonly #pollMs: number;
  readonly #stopping = new AbortController();
  readonly #deliverers = new Map<string, Deliverer>();
  /** The versions of the states with which they began. */
  readonly #versions = new Map<string, number>();
  /** Claimed, and perhaps not delivered yet: a lease of an older epoch may be in force. */
  readonly #held = new Map<string, number>();
  #running: Promise<void> | undefined;
  /** Until when the leases are in force, on the clock of `performance`. */
  #heldUntil = 0;
  #recordedAt = Number.NEGATIVE_INFINITY;
  /** What may have changed of webhooks that are delivered here. */
  readonly #changed = new Set<string>();
  /** The instances that the webhooks were divided among last. */
  #instances = '';
  /** The replicas at which others deliver, as it was logged last. */
  #othersAt = '';
  /** Ends all deliveries when the leases end. */
  #timer: NodeJS.Timeout | undefined;

  constructor(options: DeliveriesOptions) {
    this.#options = options;
    this.#pollMs = Math.min(POLL_MS_MAX, options.leaseMs / 5);
    options.metrics.observe(() => {
      const since = [...this.#deliverers.values()].map(({ behindSinceMs }) => behindSinceMs).filter((ms) => ms > 0);
      const oldest = Math.min(Date.now(), ...since);
      const paused: WebhookReadings['paused'] = [...options.known.paused.values()];
      return { held: this.#deliverers.size, lagSeconds: (Date.now() - oldest) / 1_000, paused };
    });
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Stops delivering, and leaves its webhooks to others at once. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    clearTimeout(this.#timer);
    await this.#stopAll();
    if (this.#recordedAt < 0) return;
    await this.#options.leases.release(this.#leasesOf(this.#held.keys()), true).catch(() => undefined);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    let isFailing = false;
    while (!signal.aborted) {
      try {
        await this.#poll();
        isFailing = false;
      } catch (error) {
        const { code = '' } = error as { readonly code?: string };
        const isCreated = !NOT_CREATED.has(code);
        if (isCreated && !isFailing) this.#log(error as Error);
        isFailing = isCreated;
      }
      if (this.#hasLost()) await this.#loseAll();
      await sleep(this.#pollMs, signal);
    }
  }

  #log(error: Error): void {
    const { message: reason } = error;
    const remedy = accountRemedy(error);
    if (remedy) this.#options.logger.error({ reason, remedy }, 'cannot read or claim webhooks');
    else this.#options.logger.warn({ reason }, 'cannot read or claim webhooks; retrying');
  }

  async #poll(): Promise<void> {
    const { known, leases } = this.#options;
    for (const id of await known.look()) if (this.#deliverers.has(id)) this.#changed.add(id);
    const { active } = known;
    if (active.size === 0 && this.#held.size === 0) return;
    if (this.#hasLost()) await this.#loseAll();
    const isNew = performance.now() - this.#recordedAt > this.#options.leaseMs;
    await this.#renew();
    // Other instances that are new record themselves now: what is claimed at the next poll stays where it is.
    if (isNew) return;
    const [recent, instances] = [await leases.recent(), await leases.instances()];
    const others = leases.othersAt(instances);
    this.#logOthers(others);
    if (others.length > 0) return await this.#loseAll();
    const isMine = (id: string) => this.#chosen(id, instances) === leases.holder;
    const areSame = instances.join() === this.#instances;
    for (const [id, epoch] of this.#held) {
      if (recent.get(id)?.epoch !== epoch || !active.has(id) || !(areSame || isMine(id))) await this.#giveUp(id);
    }
    this.#instances = instances.join();
    await this.#stopChanged();
    await this.#claim([...active.keys()].filter((id) => !this.#held.has(id) && isFree(recent.get(id)) && isMine(id)));
    await this.#startAll();
  }

  #logOthers(others: readonly string[]): void {
    const at = others.join(', ');
    if (at === this.#othersAt) return;
    this.#othersAt = at;
    if (at === '') return;
    const remedy =
      'nothing is delivered here until all query-apis keep the state of webhooks at one replica: name the same CLICKHOUSE_WEBHOOKS_URL in all';
    this.#options.logger.error(
      { own: this.#options.leases.holder, others: at, remedy },
      'others deliver webhooks at another replica',
    );
  }

  /** Deliveries whose webhook has changed end. Those that are still wanted begin again, from what is stored now. */
  async #stopChanged(): Promise<void> {
    for (const [id, { isPaused }] of this.#deliverers) if (isPaused) await this.#stopDeliverer(id);
    const changed = [...this.#deliverers].filter(([id]) => this.#changed.has(id));
    const stored = await this.#read(changed.map(([id]) => id));
    for (const [id, { webhook }] of changed) {
      const now = stored.get(id);
      const isSame = this.#versions.get(id) === now?.rows.state.version;
      if (!isSame || JSON.stringify(webhook) !== JSON.stringify(now?.webhook)) await this.#stopDeliverer(id);
    }
    this.#changed.clear();
  }

  /** Leases that are not renewed in time are lost, though nobody may have claimed them yet. */
  async #renew(): Promise<void> {
    const { leases, leaseMs } = this.#options;
    if (performance.now() - this.#recordedAt < leaseMs / 3) return;
    const begun = performance.now();
    const renewed = this.#leasesOf(this.#held.keys());
    await leases.record(renewed);
    const newest = await leases.newest(renewed.map(({ webhook }) => webhook));
    // One that claimed a webhook before this waits until the lease is over, so it must not be prolonged.
    for (const { webhook, epoch } of renewed) if (newest.get(webhook)?.epoch !== epoch) await this.#giveUp(webhook);
    this.#recordedAt = begun;
    this.#heldUntil = begun + leaseMs;
    clearTimeout(this.#timer);
    // Also while the next renewal waits for ClickHouse.
    this.#timer = setTimeout(() => void this.#loseAll(), this.#heldUntil - performance.now());
  }

  async #claim(free: readonly string[]): Promise<void> {
    if (free.length === 0) return;
    const { leases } = this.#options;
    const before = await leases.newest(free);
    const claims = free
      .filter((webhook) => isFree(before.get(webhook)))
      .map((webhook) => ({ webhook, epoch: (before.get(webhook)?.epoch ?? 0) + 1 }));
    if (claims.length === 0) return;
    await leases.claim(claims);
    const newest = await leases.newest(claims.map(({ webhook }) => webhook));
    const lost = claims.filter((claim) => !leases.hasWon(claim, newest.get(claim.webhook)));
    for (const { webhook, epoch } of claims) this.#held.set(webhook, epoch);
    for (const { webhook } of lost) await this.#giveUp(webhook);
  }

  /** Begins to deliver what is held, from what is stored now. */
  async #startAll(): Promise<void> {
    const { register, leases, deliverer, metrics, logger } = this.#options;
    const waiting = [...this.#held.keys()].filter((id) => !this.#deliverers.has(id));
    if (waiting.length === 0) return;
    const newest = await leases.newest(waiting);
    // After the leases: what the holder before has stored last counts.
    const stored = await this.#read(waiting.filter((id) => newest.get(id)?.isOlderHeld === false));
    for (const [id, { webhook, state, progress, rows }] of stored) {
      const epoch = this.#held.get(id);
      if (state.state !== 'active' || !progress || epoch === undefined) continue;
      const { version } = rows.state;
      const pause: DelivererOptions['pause'] = (one, reason) => register.pause(one, version, reason);
      this.#versions.set(id, version);
      this.#deliverers.set(
        id,
        new Deliverer(
          { ...deliverer, metrics, logger, pause },
          {
            webhook,
            progress: { ...progress, epoch },
            leaseMsLeft: () => (this.#held.get(id) === epoch ? this.#heldUntil - performance.now() : 0),
          },
        ),
      );
    }
  }

  #hasLost(): boolean {
    return this.#held.size > 0 && performance.now() >= this.#heldUntil;
  }

  /** Returns what is stored of webhooks that are to be delivered. */
  #read(ids: Iterable<string>): Promise<ReadonlyMap<string, StoredWebhook>> {
    const { known, register } = this.#options;
    return register.byIds(new Map([...ids].map((id) => [id, known.active.get(id) ?? ''])));
  }

  async #giveUp(id: string): Promise<void> {
    const lease = this.#leasesOf([id]);
    // Before it is given up: what was delivered last may have to be stored yet.
    await this.#stopDeliverer(id);
    this.#held.delete(id);
    await this.#options.leases.release(lease);
  }

  async #loseAll(): Promise<void> {
    this.#held.clear();
    await this.#stopAll();
  }

  async #stopDeliverer(id: string): Promise<void> {
    await this.#deliverers.get(id)?.stop();
    this.#deliverers.delete(id);
    this.#versions.delete(id);
  }

  async #stopAll(): Promise<void> {
    await Promise.all([...this.#deliverers.keys()].map((id) => this.#stopDeliverer(id)));
  }

  #leasesOf(ids: Iterable<string>): HeldLease[] {
    return [...ids].map((webhook) => ({ webhook, epoch: this.#held.get(webhook) ?? 0 }));
  }

  /** Returns the instance that a webhook falls to: the one with the highest hash. */
  #chosen(webhook: string, instances: readonly string[]): string {
    const { holder } = this.#options.leases;
    const hash = (instance: string) => createHash('sha256').update(`${instance} ${webhook}`).digest('hex');
    return instances.reduce((best, one) => (hash(one) > hash(best) ? one : best), holder);
  }
}

/** Returns what an operator has to do about an error of ClickHouse; undefined if it may pass by itself. */
function accountRemedy(error: unknown): string | undefined {
  const { type = '' } = error as { readonly type?: string };
  if (!['AUTHENTICATION_FAILED', 'ACCESS_DENIED'].includes(type)) return undefined;
  return 'create the account of CLICKHOUSE_WEBHOOKS_USER, or give it its rights: run deploy/clickhouse/accounts.sql of this version with webhooks_password_sha256 (docs/operate/secure.md#accounts)';
}

function isFree(lease: NewestLease | undefined): boolean {
  return !lease || !(lease.isHeld || lease.isOlderHeld);
}
