import { columnsOf } from '../clickhouse/fast-columns.ts';
import { DAY_MS, refuse } from '../clickhouse/refusal.ts';
import type { Runner } from '../clickhouse/replica.ts';
import { INSERTS, isEmpty, REMOVALS, rowsOf } from '../clickhouse/replicated-rows.ts';
import type { Request, SimulatedClickHouse } from '../clickhouse/simulated-clickhouse.ts';
import {
  monthOf,
  type Result,
  requireNewestEpoch,
  type Session,
  STATEMENT_EFFECTS,
  stagedEvents,
  storedList,
} from '../clickhouse/statements.ts';
import { createTables, eventKey, isHidden, type StagedEvent, type Tables } from '../clickhouse/tables.ts';
import type { Random } from '../world/random.ts';
import type { VirtualTime } from '../world/virtual-time.ts';
import { KeeperSession } from './keeper-session.ts';
import { apply, type Change, type SharedStorage } from './shared-storage.ts';

/** What is an insert here, besides those into tables that replicas copy. */
const OWN_INSERTS: typeof INSERTS = {
  'record-epoch': { into: 'epochs' },
  'record-ended-batch': { into: 'ended' },
  'record-replicas': { into: 'replicas', looks: true },
};

/** Statements that change rows which are there, besides those that remove some. */
const CHANGES = new Set([
  ...Object.keys(REMOVALS),
  ...['fill-columns', 'mark-dead-letter-replayed', 'record-server-name'],
  ...['choose-position', 'keep-gap', 'resume-partition'],
]);

/** A commit that is long under way. */
interface HeldCommit {
  readonly statement: string;
  readonly ms: number;
  /** Whether the replica loses its session meanwhile. */
  readonly losesSession: boolean;
}

interface SharedReplicaOptions {
  readonly name: string;
  readonly time: VirtualTime;
  readonly random: Random;
  readonly storage: SharedStorage;
  /** For how long Keeper keeps a session whose connection is lost, in milliseconds. */
  readonly sessionMs: number;
  readonly onConflict: (row: StagedEvent) => void;
  /** Does what a statement does that asks, or ends statements of, all replicas; undefined for another one. */
  readonly everywhere: (request: Request, runner: Runner) => Promise<Result> | undefined;
}

/**
 * What makes a simulated ClickHouse one of several replicas that share the rows of tables. A statement looks at what is committed when it begins, and
 * commits what it stores in the session of Keeper that its replica had then.
 */
export class SharedReplica {
  readonly #options: SharedReplicaOptions;
  /** What it knows of the rows without asking Keeper. */
  readonly #known = createTables();
  /** The inserts that run, each with what is done when it does no more. */
  readonly #inserts = new Set<() => void>();
  /** What it gets to know later, or has not looked at yet. */
  readonly #unknown: { readonly change: Change; readonly atMs: number }[] = [];
  #isUp = true;
  /** How often it was set up anew. */
  #setUp = 0;
  session: KeeperSession;
  /** Whether it can get a session. */
  reachesKeeper = true;
  /** Whether those who ask for all replicas are told of it, and the balancer sends statements to it. */
  isListed = true;
  /** Whether it answers other replicas. */
  answersOthers = true;
  /** By how much its clock is ahead, in milliseconds. */
  clockAheadMs = 0;
  /** By how much what it knows is behind at most, in milliseconds. */
  lagMs = 0;
  /** What becomes of its next commit by a statement. */
  heldCommit: HeldCommit | undefined;
  /** Rejects when its connections break. */
  #broken = Promise.withResolvers<never>();
  clickhouse: SimulatedClickHouse | undefined;

  constructor(options: SharedReplicaOptions) {
    this.#options = options;
    this.session = this.#newSession(DAY_MS);
    this.#broken.promise.catch(() => undefined);
    options.storage.followers.add((change) => this.#follow(change));
  }

  /** One that is set up anew has another name. */
  get name(): string {
    return `${this.#options.name}${this.#setUp > 0 ? `.${this.#setUp}` : ''}`;
  }

  /** It is set up anew: nothing runs there any more. */
  setUpAnew(): void {
    this.clickhouse?.stop();
    this.#setUp += 1;
    this.clickhouse?.start();
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  set isUp(isUp: boolean) {
    this.#isUp = isUp;
    if (isUp) this.connect();
    else {
      this.session.lose();
      for (const leave of this.#inserts) leave();
      this.breakConnections();
    }
  }

  /** Its clients get no response. What it does for them goes on. */
  breakConnections(): void {
    this.#broken.reject(new Error('read ECONNRESET'));
    this.#broken = Promise.withResolvers<never>();
    this.#broken.promise.catch(() => undefined);
  }

  /** Never resolves; rejects when its connections break. */
  get broken(): Promise<never> {
    return this.#broken.promise;
  }

  get tables(): Tables {
    return this.#options.storage.tables;
  }

  /** Gets a session if it has none, and can have one. */
  connect(): void {
    if (this.#isUp && this.reachesKeeper && this.session.isLost) this.session = this.#newSession();
  }

  /** One that it loses is soon followed by another one, if it can have one. */
  #newSession(ageMs?: number): KeeperSession {
    const { time, random, sessionMs } = this.#options;
    const onLost = () => void time.after(random.between(5, 80), () => this.connect());
    return new KeeperSession(time, { timeoutMs: sessionMs, onLost }, ageMs);
  }

  /** Its next statement makes no progress for some time in its midst. */
  stallNext(ms: number): void {
    if (this.clickhouse) this.clickhouse.stallsNextMs = ms;
  }

  /** Does what a statement does. */
  async run(request: Request, runner: Runner): Promise<Result> {
    const everywhere = this.#options.everywhere(request, runner);
    if (everywhere) return await everywhere;
    const { storage, time } = this.#options;
    const { name, parameters, lines, tables: sent } = request;
    // What it stores is committed in this one.
    const { session: keeper } = this;
    if (request.isConsistent && keeper.isLost) refuse('KEEPER_EXCEPTION');
    const view = request.isConsistent ? storage.tables : this.#knownNow();
    this.#requireMayStore(request, view);
    const session = storage.carried.sessionOf(name, sent);
    const attempt = attemptOf(request);
    if (name === 'store-events') return await this.#storeEvents(request, session, { view, keeper, runner });
    if (name === 'find-repeats') {
      const keys = stagedEvents(session).map(eventKey);
      storage.conflicts.set(attempt, new Set(keys.filter((key) => storage.isBeingInserted(key, attempt))));
    }
    const effect = STATEMENT_EFFECTS[name];
    if (!effect) throw new Error(`the simulated ClickHouse does not know the statement ${name}`);
    const call = { session, parameters, lines, nowMs: time.dateMs + this.clockAheadMs, answering: this.name };
    const insert = OWN_INSERTS[name] ?? INSERTS[name];
    if (insert) {
      let result: Result = {};
      const rows = rowsOf(view, insert, (tables) => {
        result = effect({ ...call, tables });
      });
      if (!isEmpty(rows[insert.into])) {
        await runner.pause();
        await this.#commit({ rows }, { keeper, runner, request });
      }
      return result;
    }
    if (CHANGES.has(name)) {
      await runner.pause();
      await this.#commit({ change: (tables) => void effect({ ...call, tables }) }, { keeper, runner, request });
      return {};
    }
    return { ...effect({ ...call, tables: view }), blocks: storage.carried.blocksOf(name, session) };
  }

  /** Looks at what the text of a statement looks at, before anything else. */
  #requireMayStore({ looksAt, parameters }: Request, view: Tables): void {
    if (looksAt.epoch) requireNewestEpoch(view, parameters);
    if (looksAt.ended && view.ended.has(parameters['attempt'] as string))
      refuse('FUNCTION_THROW_IF_VALUE_IS_NON_ZERO', 'the attempt has ended');
    if (looksAt.replica && view.replicas.get(this.name)?.isGone !== false)
      refuse('FUNCTION_THROW_IF_VALUE_IS_NON_ZERO', 'the replica is not recorded yet');
  }

  async #storeEvents(
    request: Request,
    session: Session,
    { view, keeper, runner }: { readonly view: Tables; readonly keeper: KeeperSession; readonly runner: Runner },
  ): Promise<Result> {
    const { storage, onConflict } = this.#options;
    const rows = stagedEvents(session)
      .filter((event) => !isHidden(view, event))
      .map((event) => {
        const fast = columnsOf(event, storedList(event, request.parameters));
        return { ...event, month: monthOf(event), fast };
      });
    const attempt = attemptOf(request);
    const isConflict = (key: string) =>
      storage.conflicts.get(attempt)?.has(key) || storage.isBeingInserted(key, attempt);
    const conflict = rows.find((row) => isConflict(eventKey(row)));
    if (conflict) onConflict(conflict);
    const inserting = { attempt, keys: new Set(rows.map(eventKey)) };
    storage.inserting.add(inserting);
    const underWay = countUnderWay(() => storage.inserting.delete(inserting));
    const leave = () => this.#inserts.delete(leave) && underWay.end();
    this.#inserts.add(leave);
    try {
      const months = [...Map.groupBy(rows, ({ month }) => month)].toSorted(([one], [other]) => (one < other ? -1 : 1));
      for (const [, events] of months) {
        await runner.pause();
        underWay.begin();
        await this.#commit({ rows: { ...createTables(), events } }, { keeper, runner, request }, underWay.end);
      }
      return { written: rows.length };
    } finally {
      leave();
    }
  }

  /** @param end called once it is committed, or will never be */
  async #commit(
    change: Change,
    { keeper, runner, request }: { readonly keeper: KeeperSession; readonly runner: Runner; readonly request: Request },
    end: () => void = () => undefined,
  ): Promise<void> {
    const { storage, random, time } = this.#options;
    let isCommitted = false;
    const commit = () => {
      isCommitted = true;
      storage.commit(change);
    };
    const underWay = countUnderWay(end);
    try {
      for (let [session, tries] = [keeper, 0]; !isCommitted; session = this.session, tries += 1) {
        // With retries, what was begun in one session goes on in the next one: nobody knows whether it is still under way in the former one.
        const isLastTry = tries >= request.keeperRetries;
        if (session.isLost && isLastTry) refuse('KEEPER_EXCEPTION');
        if (session.isLost) {
          await runner.pause();
          continue;
        }
        const held = this.heldCommit?.statement === request.name ? this.heldCommit : undefined;
        const ms = held?.ms ?? random.between(0.1, 3);
        if (held?.losesSession) time.after(random.between(0, ms), () => session.lose());
        if (held) this.heldCommit = undefined;
        underWay.begin();
        await session.send(ms, commit, underWay.end).catch((error) => {
          if (isLastTry) throw error;
        });
      }
    } finally {
      underWay.end();
    }
    await runner.wait(0);
  }

  /** What it knows comes in the order in which it was committed. */
  #follow(change: Change): void {
    const { time, random } = this.#options;
    const last = this.#unknown.at(-1)?.atMs ?? 0;
    this.#unknown.push({ change, atMs: Math.max(last, time.nowMs + random.between(0, 30) + this.lagMs) });
  }

  #knownNow(): Tables {
    const { nowMs } = this.#options.time;
    const later = this.#unknown.findIndex(({ atMs }) => atMs > nowMs);
    const learned = this.#unknown.splice(0, later < 0 ? this.#unknown.length : later);
    for (const { change } of learned) apply(this.#known, change);
    return this.#known;
  }
}

/** Counts what is under way: whoever counts, and what that one begins. @param onEnd called once all of it has ended */
function countUnderWay(onEnd: () => void) {
  let count = 1;
  return {
    begin() {
      count += 1;
    },
    end() {
      count -= 1;
      if (count === 0) onEnd();
    },
  };
}

/** Returns what begins the query ids of an attempt. */
function attemptOf({ queryId }: Request): string {
  return queryId.split('/').slice(0, -2).join('/');
}
