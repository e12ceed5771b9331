import { ClickHouseSession } from '@sluice/storage/clickhouse/clickhouse-session';
import type { TemporaryTables } from '@sluice/storage/clickhouse/temporary-tables';
import type { WriterConfig } from '../config.ts';
import { eraseRows, forgetUsersWithoutRows } from './deleted-rows.ts';
import { type DueErasure, eraseInHalves, passesOf } from './erasure-passes.ts';
import { Rounds, type RoundsDependencies } from './rounds.ts';
import { STATEMENTS } from './statements.ts';

/** How many due deletions one query returns. */
const USERS_MAX = 1_000;

/** How many deletions of users with rows are gathered: each makes the totals of its workspace dearer. */
const GATHERED_MAX = 250;

/** How long the writer waits for one statement, in milliseconds. A mutation that takes longer goes on in ClickHouse. */
export const ERASURE_TIMEOUT_MS = 600_000;

export type ErasureConfig = Pick<WriterConfig, 'ERASURE_DELAY_MS' | 'ERASURE_INTERVAL_MS' | 'ERASURE_GATHER_MS'>;

/**
 * Erases the data of deleted users in the background. Queries hide it from the moment the deletion is stored.
 *
 * A deletion is due `ERASURE_DELAY_MS` after it was stored. This is longer than a statement may take
 * (`STATEMENT_TIMEOUT_MS`), so every insert that began before the deletion has ended by then, and every later insert
 * leaves out the rows of the user. No row of the user can therefore appear after the erasure.
 *
 * Example: user u is deleted at 12:00:00. A batch with an event of u was sent at 11:59:59 and is still being inserted.
 * At 12:00:30 its insert has ended or was cancelled. At 12:01:00 the deletion is due, and the event is erased.
 *
 * A due deletion of a user without rows is forgotten at once. To remove rows, ClickHouse rewrites the parts that hold
 * them, whose cost grows with the table and not with the rows. So deletions with rows are gathered until the oldest is
 * `ERASURE_GATHER_MS` old, or `GATHERED_MAX` are gathered. One round removes the rows of all of them, so that they share
 * the rewrites. A round that is interrupted goes on with the partitions that still hold such rows.
 *
 * Where the server is one of several replicas, an insert at another one may not know the deletion yet, or be under way for long: then due
 * deletions are settled at all of them before anything is erased or forgotten. That takes `ERASURE_DELAY_MS`, once for all that are due.
 *
 * The oldest deletions come first. A deletion that cannot be erased is retried in the next round.
 */
export class Erasure extends Rounds {
  readonly #config: ErasureConfig;
  readonly #deps: RoundsDependencies;
  /** The deletion that was looked at last; undefined to begin with the oldest. */
  #looked: DueErasure | undefined;
  /** Up to when deletions were stored that are settled at all replicas, in milliseconds of ClickHouse's time. */
  #settledMs: number;
  /** When the next round may begin, on the clock of `performance`. */
  #roundFrom = 0;

  constructor(config: ErasureConfig, deps: RoundsDependencies) {
    super({ intervalMs: config.ERASURE_INTERVAL_MS, what: 'erasing deleted users' }, deps);
    this.#config = config;
    this.#deps = deps;
    this.#settledMs = deps.replicas ? 0 : Number.POSITIVE_INFINITY;
  }

  override setOwner(isOwner: boolean): void {
    // The next owner begins with the oldest deletion.
    if (!isOwner) this.#looked = undefined;
    super.setOwner(isOwner);
  }

  /** Forgets what is due and has no rows, and erases what was gathered for long enough. @throws ClickHouse's errors */
  async takeRound(): Promise<void> {
    await this.#lookAtNew();
    await this.#eraseGathered();
  }

  /** Forgets the deletions of users without rows, among those that became due since the last look or round. */
  async #lookAtNew(): Promise<void> {
    for await (const pass of this.#duePasses(this.#looked)) {
      let forgotten = 0;
      const forget = async (users: readonly DueErasure[]) => {
        forgotten += await this.#inSessions((session, others) => forgetUsersWithoutRows(session, users, others));
      };
      await eraseInHalves(pass, forget, (error) => this.#warn(error));
      this.#looked = pass.at(-1);
      if (forgotten > 0) this.#deps.logger.info({ users: forgotten }, 'erased deleted users');
    }
  }

  /**
   * Erases all due deletions when the oldest has waited for long enough, and at most once in that time; or when so many
   * are gathered that hiding them costs more than a rewrite does for each.
   */
  async #eraseGathered(): Promise<void> {
    const { ERASURE_DELAY_MS, ERASURE_GATHER_MS } = this.#config;
    const [oldest] = await this.#readDue(undefined, Math.max(ERASURE_DELAY_MS, ERASURE_GATHER_MS), 1);
    const isTime = oldest !== undefined && performance.now() >= this.#roundFrom;
    if (!isTime && (await this.#readDue(undefined, ERASURE_DELAY_MS, GATHERED_MAX)).length < GATHERED_MAX) return;
    const proceed = () => {
      if (!this.mayGoOn) throw new Error('this writer no longer erases');
    };
    const erase = (users: readonly DueErasure[]) => this.#inSession((session) => eraseRows(session, users, proceed));
    for await (const pass of this.#duePasses(undefined)) {
      await eraseInHalves(pass, erase, (error) => this.#warn(error));
    }
    // A deletion that cannot be erased stays the oldest, and must not start round after round.
    this.#roundFrom = performance.now() + ERASURE_GATHER_MS;
    // The next look forgets those that nothing is left of.
    this.#looked = undefined;
  }

  /** Returns the due deletions after a cursor, in passes that ClickHouse accepts; of replicas, those that are settled. */
  async *#duePasses(after: DueErasure | undefined): AsyncGenerator<readonly DueErasure[]> {
    await this.#settleDue(after);
    let cursor = after;
    while (this.mayGoOn) {
      const all = await this.#readDue(cursor, this.#config.ERASURE_DELAY_MS, USERS_MAX);
      const due = all.filter((deletion) => deletion.stored_ms <= this.#settledMs);
      if (due.length === 0) return;
      yield* passesOf(due);
      cursor = due.at(-1);
    }
  }

  /**
   * Settles the deletions that are due after a cursor, unless they were before, and has the own replica know all that was stored of them: it may
   * lack what says whose visitors they have.
   */
  async #settleDue(after: DueErasure | undefined): Promise<void> {
    const { replicas } = this.#deps;
    const { ERASURE_DELAY_MS } = this.#config;
    if (!replicas || (await this.#readDue(after, ERASURE_DELAY_MS, 1)).length === 0) return;
    const settled = { workspace_id: '', user_id: '', deleted_version: 0, stored_ms: this.#settledMs + 1 };
    if ((await this.#readDue(settled, ERASURE_DELAY_MS, 1)).length > 0) {
      // What was due by then was pending, however much the clocks of replicas differ within that delay.
      this.#settledMs = (await replicas.settle(ERASURE_DELAY_MS, this.stopping)) - ERASURE_DELAY_MS;
    }
    await replicas.readDeleted?.();
  }

  async #readDue(after: DueErasure | undefined, delayMs: number, usersMax: number): Promise<DueErasure[]> {
    const cursor = {
      afterMs: after?.stored_ms ?? 0,
      afterWorkspace: after?.workspace_id ?? '',
      afterUser: after?.user_id ?? '',
    };
    return await this.#inSession((session) =>
      session.read<DueErasure>(STATEMENTS['find-due-erasures'], { delayMs, usersMax, ...cursor }),
    );
  }

  async #inSession<Result>(work: (session: TemporaryTables) => Promise<Result>): Promise<Result> {
    return await this.useTables(this.#deps.client, this.#queryIdPrefix, ERASURE_TIMEOUT_MS, work);
  }

  /** Works in a session, and in one at each other replica. */
  async #inSessions<Result>(
    work: (session: TemporaryTables, others: readonly TemporaryTables[]) => Promise<Result>,
  ): Promise<Result> {
    const others = (this.#deps.others ?? []).map(
      (client) => new ClickHouseSession(client, this.#queryIdPrefix, ERASURE_TIMEOUT_MS),
    );
    const result = await this.#inSession((session) => work(session, others));
    for (const session of others) await session.close();
    return result;
  }

  get #queryIdPrefix(): string {
    return `sluice-writer/${this.#deps.writerId}-erasure`;
  }

  #warn(error: Error): void {
    this.#deps.logger.warn({ reason: error.message }, 'erasing a deleted user failed; retrying in the next round');
  }
}
