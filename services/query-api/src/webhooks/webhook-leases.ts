import { randomUUID } from 'node:crypto';
import { sleep } from '@sluice/shared/base/retry';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';

/** Stands for the instances themselves in the table of leases. */
const INSTANCES = '00000000-0000-0000-0000-000000000000';

/** The leases of webhooks that meet a condition. */
const leasesOf = (which: string) => `
    SELECT webhook_id, epoch, holder, argMax(expires_at, recorded_at) > now64(3) AS is_in_force
    FROM webhook_leases WHERE webhook_id != {instances:UUID} AND ${which} GROUP BY webhook_id, epoch, holder`;

/** Returns for each webhook the highest epoch, who has claimed it, and whether a lease of it, or of an older epoch, is in force. */
const newestOf = (leases: string) => `
SELECT
  toString(webhook_id) AS webhook, max(epoch) AS newest_epoch,
  groupUniqArrayIf(holder, epoch = newest AND holder != '') AS holders,
  max(is_in_force AND epoch = newest) AS is_held,
  max(is_in_force AND epoch < newest) AS is_older_held
FROM (
  SELECT *, max(epoch) OVER (PARTITION BY webhook_id) AS newest
  FROM (${leases})
)
GROUP BY webhook_id`;

const ALL_LEASES = newestOf(leasesOf('true'));

/** The epoch of a position counts as well: rows of leases expire. */
const BY_IDS = newestOf(`${leasesOf('webhook_id IN {webhooks:Array(UUID)}')}
    UNION ALL
    SELECT webhook_id, epoch, '' AS holder, 0 AS is_in_force
    FROM webhook_positions FINAL WHERE webhook_id IN {webhooks:Array(UUID)}`);

/** How many are read by their ids at once, which stand in the address of the request. */
const IDS_MAX = 1_000;

const LIVE_INSTANCES = `
SELECT holder
FROM (
  SELECT holder, argMax(expires_at, recorded_at) AS expires
  FROM webhook_leases WHERE webhook_id = {instances:UUID} GROUP BY holder
)
WHERE expires > now64(3)
ORDER BY holder`;

/** What is known of a webhook's lease. */
export interface NewestLease {
  readonly webhook: string;
  readonly epoch: number;
  /** Who has claimed the epoch. If there are several, nobody has it, or the one that was first: the others cannot tell. */
  readonly holders: readonly string[];
  readonly isHeld: boolean;
  /** Whether a lease of an older epoch is in force. Its holder may be about to learn of the newer one. */
  readonly isOlderHeld: boolean;
}

interface LeaseRow {
  readonly webhook: string;
  readonly newest_epoch: number;
  readonly holders: readonly string[];
  readonly is_held: number;
  readonly is_older_held: number;
}

export interface HeldLease {
  readonly webhook: string;
  readonly epoch: number;
}

/** Between a holder and the server at which it keeps what it knows, which is in no name of either. */
const AT = '@';

/** How often one that takes a webhook tries, and the longest pause after a try, in milliseconds. */
const CLAIMS_MAX = 20;
const CLAIM_PAUSE_MS_MAX = 100;

/** How often one that has taken a webhook looks whether its holder before has left it, in milliseconds. */
const ALONE_PAUSE_MS = 200;

/** A webhook that was taken from its holder. */
export interface TakenLease {
  readonly epoch: number;
  /** Whether nobody has claimed a newer epoch. */
  isNewest(): Promise<boolean>;
  /** Resolves once no lease of an older epoch is in force: until then its holder may store and send what it has begun. */
  untilAlone(): Promise<void>;
  /** Leaves the webhook to whoever claims it next. */
  release(): Promise<void>;
}

/**
 * Leases of webhooks in ClickHouse. A claim of an epoch is a row; whoever reads afterwards that the epoch is the highest, and
 * that nobody else has claimed it, has the webhook, once no lease of an older epoch is in force. Of two that claim the same epoch, the
 * one whose row came later reads both, so two never have it. Its methods throw ClickHouse's errors.
 */
export class WebhookLeases {
  readonly #client: ClickHouseClient;
  /** Unique among all instances, past ones included. It names the replica at which the instance reads and writes, if ClickHouse has several. */
  readonly holder: string;
  readonly #leaseMs: number;

  /** @param replica the one of several that the client reaches. Default: there is one server */
  constructor(client: ClickHouseClient, holder: string, leaseMs: number, replica = '') {
    this.#client = client;
    this.holder = replica === '' ? holder : `${holder}${AT}${replica}`;
    this.#leaseMs = leaseMs;
  }

  /** Returns the newest lease of each of these webhooks, by its id, if it ever had one. */
  async newest(webhooks: readonly string[]): Promise<ReadonlyMap<string, NewestLease>> {
    const found = new Map<string, NewestLease>();
    for (let read = 0; read < webhooks.length; read += IDS_MAX) {
      const leases = await this.#read(BY_IDS, { webhooks: webhooks.slice(read, read + IDS_MAX) });
      for (const lease of leases) found.set(lease.webhook, lease);
    }
    return found;
  }

  /** Returns the newest lease of each webhook that has had one lately, by its id. All that are in force are among them. */
  async recent(): Promise<ReadonlyMap<string, NewestLease>> {
    return new Map((await this.#read(ALL_LEASES, {})).map((lease) => [lease.webhook, lease]));
  }

  /** Returns the instances that deliver. */
  async instances(): Promise<readonly string[]> {
    const query_params = { instances: INSTANCES };
    const result = await this.#client.query({ query: LIVE_INSTANCES, query_params, format: 'JSONEachRow' });
    return (await result.json<{ readonly holder: string }>()).map(({ holder }) => holder);
  }

  /** Returns at which replicas other instances read and write: two such instances could not tell whose a webhook is. */
  othersAt(instances: readonly string[]): readonly string[] {
    const others = instances.map(replicaOf).filter((replica) => replica !== replicaOf(this.holder));
    return [...new Set(others)].sort();
  }

  /** Records that this instance delivers, and has these webhooks from now on for the time of a lease. */
  async record(leases: readonly HeldLease[]): Promise<void> {
    await this.#insert([...leases, { webhook: INSTANCES, epoch: 0 }], this.#leaseMs);
  }

  /** Claims epochs. Read afterwards who {@link hasWon}. */
  async claim(leases: readonly HeldLease[]): Promise<void> {
    await this.#insert(leases, this.#leaseMs);
  }

  /** Gives webhooks up; also the instance itself, if it stops. */
  async release(leases: readonly HeldLease[], isStopping = false): Promise<void> {
    const all = isStopping ? [...leases, { webhook: INSTANCES, epoch: 0 }] : leases;
    if (all.length > 0) await this.#insert(all, 0);
  }

  /** Whether this instance, which has claimed the epoch before the others were read, has it. */
  hasWon({ epoch }: HeldLease, newest: NewestLease | undefined): boolean {
    return newest?.epoch === epoch && newest.holders.length === 1 && newest.holders[0] === this.holder;
  }

  /**
   * Takes a webhook from its holder. Whoever claims it after the release begins from what is stored in the epoch. The holder is
   * nobody else, so that neither the deliveries of this instance nor another request take the claim for their own.
   */
  async take(webhook: string): Promise<TakenLease> {
    const own = new WebhookLeases(this.#client, randomUUID(), this.#leaseMs);
    for (let count = 0; count < CLAIMS_MAX; count += 1) {
      const claim = { webhook, epoch: ((await own.newest([webhook])).get(webhook)?.epoch ?? 0) + 1 };
      await own.claim([claim]);
      const newest = async () => (await own.newest([webhook])).get(webhook);
      const isNewest = async () => own.hasWon(claim, await newest());
      const untilAlone = async () => {
        while ((await newest())?.isOlderHeld) await sleep(ALONE_PAUSE_MS);
      };
      const release = () => own.release([claim]);
      if (await isNewest()) return { epoch: claim.epoch, isNewest, untilAlone, release };
      await release();
      await sleep(Math.random() * CLAIM_PAUSE_MS_MAX);
    }
    throw new Error(`others claim the webhook ${webhook} all the time`);
  }

  async #read(query: string, given: Record<string, unknown>): Promise<readonly NewestLease[]> {
    const query_params = { ...given, instances: INSTANCES };
    const result = await this.#client.query({ query, query_params, format: 'JSONEachRow' });
    return (await result.json<LeaseRow>()).map((row) => ({
      ...{ webhook: row.webhook, epoch: row.newest_epoch, holders: row.holders },
      ...{ isHeld: row.is_held === 1, isOlderHeld: row.is_older_held === 1 },
    }));
  }

  async #insert(leases: readonly HeldLease[], leaseMs: number): Promise<void> {
    const values = leases.map(({ webhook, epoch }) => ({
      ...{ webhook_id: webhook, epoch, holder: this.holder, lease_ms: leaseMs },
    }));
    await this.#client.insert({ table: 'webhook_leases', values, format: 'JSONEachRow' });
  }
}

function replicaOf(holder: string): string {
  return holder.split(AT)[1] ?? '';
}
