import { refuse } from '../clickhouse/refusal.ts';
import type { Runner } from '../clickhouse/replica.ts';
import type { SimulatedClickHouseOptions } from '../clickhouse/simulated-clickhouse.ts';
import { type Address, type Request, SimulatedClickHouse } from '../clickhouse/simulated-clickhouse.ts';
import type { Result } from '../clickhouse/statements.ts';
import type { Tables } from '../clickhouse/tables.ts';
import type { Random } from '../world/random.ts';
import type { VirtualTime } from '../world/virtual-time.ts';
import { ForgottenDeletions } from '../writer/forgotten-deletions.ts';
import type { Oracle } from '../writer/oracle.ts';
import { SharedReplica } from './shared-replica.ts';
import { SharedStorage } from './shared-storage.ts';

/** For how long it is waited for a replica that does not answer, in milliseconds. */
const UNANSWERED_MS = 400;

const SESSION_MS = 1_000;

/** How likely the balancer sends a statement to one that may have left. */
const LATE_BALANCER = 0.1;

interface SharedSetOptions extends Pick<SimulatedClickHouseOptions, 'time' | 'network' | 'random' | 'healthyMs'> {
  readonly count: number;
  /** How many are not there in the beginning. Default: none. */
  readonly spares?: number;
  /** For how long Keeper keeps a session whose connection is lost, in milliseconds. Default: {@link SESSION_MS}. */
  readonly sessionMs?: number | undefined;
  /** Of what all of them share. */
  readonly oracle: Pick<Oracle, 'checkInsert' | 'reportConflict' | 'checkForgotten'>;
}

/** Replicas that share the rows of tables, behind one address: each statement reaches any of them. */
export class SharedSet implements Address {
  readonly name = 'ClickHouse';
  readonly #time: VirtualTime;
  readonly #random: Random;
  readonly sessionMs: number;
  readonly storage: SharedStorage;
  readonly replicas: readonly SharedReplica[];
  /** Called with the replica to which the next statement of a name goes. */
  readonly #next = new Map<string, Set<(replica: SharedReplica) => void>>();
  /** One that the balancer sends much to, since it has nothing to do yet. */
  newest: SharedReplica | undefined;
  readonly forgotten = new ForgottenDeletions();

  constructor({ count, spares = 0, sessionMs = SESSION_MS, oracle, ...common }: SharedSetOptions) {
    this.sessionMs = sessionMs;
    const { time, random } = common;
    this.#time = time;
    this.#random = random;
    this.storage = new SharedStorage({
      onEvents: (rows) => oracle.checkInsert(rows),
      onForgotten: (before) => {
        this.forgotten.note(before, this.storage.tables.pendingDeletions);
        oracle.checkForgotten();
      },
    });
    this.replicas = Array.from({ length: count + spares }, (_, index) => {
      const name = `ClickHouse r${index + 1}`;
      const onConflict: SimulatedClickHouseOptions['onConflict'] = (row) => oracle.reportConflict(row);
      const everywhere = (request: Request, runner: Runner) => this.#everywhere(request, runner);
      const shared = new SharedReplica({
        name,
        time,
        random,
        storage: this.storage,
        sessionMs,
        onConflict,
        everywhere,
      });
      shared.isListed = index < count;
      const onEvents = () => undefined;
      shared.clickhouse = new SimulatedClickHouse({ ...common, name, shared, onEvents, onConflict });
      return shared;
    });
  }

  /** Each of them, as a server. What is stored is the same at all. */
  get clickhouses(): readonly SimulatedClickHouse[] {
    return this.replicas.flatMap(({ clickhouse }) => clickhouse ?? []);
  }

  get isUp(): boolean {
    return true;
  }

  get tables(): readonly Tables[] {
    return [this.storage.tables];
  }

  get #listed(): readonly SharedReplica[] {
    return this.replicas.filter(({ isListed }) => isListed);
  }

  /** Calls back with the replica to which the next statement of a name goes, before it runs. */
  onNext(name: string, run: (replica: SharedReplica) => void): void {
    const waiting = this.#next.get(name) ?? new Set();
    this.#next.set(name, waiting.add(run));
  }

  async run(request: Request): Promise<Result> {
    const isAmiss = this.#random.isTrue(LATE_BALANCER);
    const chosen = this.#random.pick(isAmiss ? this.replicas : this.#listed);
    const replica = this.newest?.isListed && this.#random.isTrue(0.5) ? this.newest : chosen;
    const { clickhouse } = replica;
    if (!clickhouse || !replica.isUp) throw new Error('connect ECONNREFUSED');
    const waiting = [...(this.#next.get(request.name) ?? [])];
    this.#next.delete(request.name);
    for (const run of waiting) run(replica);
    return await Promise.race([clickhouse.run(request), replica.broken]);
  }

  /** A replica leaves, and all that it does goes on, unless it is the last one. Mostly the balancer breaks its connections. Returns whether it has left. */
  leave(replica: SharedReplica): boolean {
    if (this.#listed.length < 2 || !replica.isListed) return false;
    replica.isListed = false;
    if (this.#random.isTrue(0.7)) replica.breakConnections();
    return true;
  }

  /** Ends all that is wrong. */
  mend(): void {
    this.#next.clear();
    this.newest = undefined;
    for (const replica of this.replicas) {
      replica.isListed = true;
      replica.answersOthers = true;
      replica.reachesKeeper = true;
      replica.connect();
      replica.lagMs = 0;
      replica.clockAheadMs = 0;
      replica.heldCommit = undefined;
    }
  }

  #everywhere({ name, parameters, needsAll }: Request, runner: Runner): Promise<Result> | undefined {
    const { prefix = '', except = '' } = parameters as Record<string, string>;
    const isMeant = (queryId: string) => queryId.startsWith(prefix) && (except === '' || !queryId.startsWith(except));
    switch (name) {
      case 'end-statements-everywhere':
        return this.#kill(isMeant, needsAll, runner);
      case 'find-statements-everywhere':
        return this.#ask(needsAll, runner, ({ name: replica, clickhouse }) => {
          const running = clickhouse?.running(isMeant).filter((ms) => ms >= Number(parameters['ageMs'])) ?? [];
          return [{ replica, running: running.length }];
        });
      case 'read-sessions':
        return this.#ask(needsAll, runner, ({ name: replica, session }) =>
          session.isLost
            ? []
            : [{ replica, ageMs: secondsOf(this.#time.nowMs - session.beganAtMs), timeoutMs: this.sessionMs }],
        );
      default:
        return undefined;
    }
  }

  /** KILL QUERY ON CLUSTER … SYNC: resolves when the statements have ended at each replica that is listed now. */
  async #kill(which: (queryId: string) => boolean, needsAll: boolean, runner: Runner): Promise<Result> {
    await runner.pause();
    const ended = this.#listed.map(async (replica) => {
      if (replica.isUp && replica.answersOthers) await replica.clickhouse?.kill(which);
      else if (needsAll) await this.#unanswered();
    });
    await Promise.all(ended);
    return {};
  }

  /** What each replica says that is listed now, each at another moment. */
  async #ask(
    needsAll: boolean,
    runner: Runner,
    answer: (replica: SharedReplica) => readonly object[],
  ): Promise<Result> {
    await runner.pause();
    const answers = this.#listed.map(async (replica) => {
      await this.#time.wait(this.#random.between(0, 3));
      if (replica.isUp && replica.answersOthers) return answer(replica);
      return needsAll ? await this.#unanswered() : [];
    });
    return { rows: (await Promise.all(answers)).flat() };
  }

  async #unanswered(): Promise<never> {
    await this.#time.wait(UNANSWERED_MS);
    return refuse('ALL_CONNECTION_TRIES_FAILED');
  }
}

/** ClickHouse tells whole seconds. */
function secondsOf(ms: number): number {
  return Math.floor(ms / 1_000) * 1_000;
}
