import type { SharedReplica } from '../shared/shared-replica.ts';
import type { Network } from '../world/network.ts';
import type { Random } from '../world/random.ts';
import type { VirtualTime } from '../world/virtual-time.ts';
import type { SentTable } from './carried-rows.ts';
import { columnsOf } from './fast-columns.ts';
import { refuse } from './refusal.ts';
import type { InsertSettings, Replica, Runner } from './replica.ts';
import {
  monthOf,
  type Result,
  requireNewestEpoch,
  type Session,
  STATEMENT_EFFECTS,
  stagedEvents,
  storedList,
} from './statements.ts';
import { createTables, eventKey, isHidden, type StagedEvent, type StoredEvent, type Tables } from './tables.ts';

/** How long a session is kept after its last statement, in milliseconds. */
const SESSION_TIMEOUT_MS = 60_000;

/** How long a statement takes at most on a machine that is as quick as others, in milliseconds. */
const HEALTHY_MS = 20;

/** How often a statement that makes no progress looks whether it was killed, in milliseconds. */
const STALLED_MS = 50;

/** What a client sends. */
export interface Request {
  readonly name: string;
  readonly queryId: string;
  readonly sessionId: string | undefined;
  readonly parameters: Readonly<Record<string, unknown>>;
  readonly lines: readonly string[];
  readonly timeoutMs: number;
  readonly closesSession: boolean;
  /** Whether it is refused where its session has not begun. */
  readonly goesOn: boolean;
  /** Whether it looks at its parameter `server`, and is refused by another one. */
  readonly namesServer: boolean;
  readonly insertSettings: InsertSettings;
  /** The tables that were sent with it. */
  readonly tables: readonly SentTable[];
  /** What its text looks at before it stores anything. */
  readonly looksAt: { readonly epoch: boolean; readonly ended: boolean; readonly replica: boolean };
  /** Whether it finds all that was committed before, at whichever replica. */
  readonly isConsistent: boolean;
  /** In how many other sessions of Keeper its replica may commit what it stores. */
  readonly keeperRetries: number;
  /** Whether it is an error that a replica of the cluster does not answer. */
  readonly needsAll: boolean;
}

/** What answers at an address. */
export interface Address {
  /** Its name in the network. */
  readonly name: string;
  readonly isUp: boolean;
  /** @throws {ClickHouseError} */
  run(request: Request): Promise<Result>;
}

/** A statement that is being run. */
interface Running {
  readonly queryId: string;
  readonly sessionId: string | undefined;
  /** When it began, in milliseconds. */
  readonly beganAtMs: number;
  /** Why it is to end. */
  ending: 'QUERY_WAS_CANCELLED' | 'TIMEOUT_EXCEEDED' | undefined;
  readonly ended: PromiseWithResolvers<void>;
  /** The server was restarted: it does nothing any more. */
  isGone: boolean;
  /** Until when it makes no progress, unless it is killed; in milliseconds. */
  stalledUntilMs: number;
}

interface OpenSession {
  readonly tables: Session;
  usedAtMs: number;
}

export interface SimulatedClickHouseOptions {
  /** Its name in the network and in traces. */
  readonly name: string;
  readonly time: VirtualTime;
  readonly network: Network;
  readonly random: Random;
  /** Called with the rows that an insert makes visible, before they are. */
  readonly onEvents: (rows: readonly StoredEvent[]) => void;
  /** How long a statement takes at most while nothing is wrong, in milliseconds. Default: {@link HEALTHY_MS}. */
  readonly healthyMs?: number | undefined;
  /** Called with an event that is inserted while another insert of it is running, or was when its repeats were looked for. */
  readonly onConflict: (row: StagedEvent) => void;
  /** What it is one of several replicas by. Default: it has its rows alone. */
  readonly replica?: Replica | undefined;
  /** What it is one of several replicas by that share their rows. Default: it has its rows alone. */
  readonly shared?: SharedReplica | undefined;
}

/**
 * A ClickHouse server that knows the statements of the writer. Statements take time, run beside each other, and can be
 * killed; what a statement stores becomes visible at one moment, but for an insert of events, which writes one month
 * after the other.
 */
export class SimulatedClickHouse implements Address {
  readonly #options: SimulatedClickHouseOptions;
  #tables: Tables = createTables();
  #sessions = new Map<string, OpenSession>();
  #running = new Set<Running>();
  /** The keys of the events of each insert that is running. */
  #inserting = new Set<ReadonlySet<string>>();
  isUp = true;
  /** Whether it never starts again. */
  isGone = false;
  /** How likely a statement is refused for want of memory. */
  refusals = 0;
  /** How long a statement takes at most, in milliseconds. */
  slownessMs: number;
  /** For how long the next statement makes no progress in its midst, in milliseconds. */
  stallsNextMs = 0;
  /** How many rows a statement has memory for. */
  rowsMax = Number.POSITIVE_INFINITY;

  constructor(options: SimulatedClickHouseOptions) {
    this.#options = options;
    this.slownessMs = this.healthyMs;
  }

  get name(): string {
    return this.#options.name;
  }

  get replica(): Replica | undefined {
    return this.#options.replica;
  }

  get tables(): Tables {
    return this.#options.shared?.tables ?? this.replica?.tables ?? this.#tables;
  }

  set tables(tables: Tables) {
    this.#tables = tables;
  }

  /** How long a statement takes at most while nothing is wrong, in milliseconds. */
  get healthyMs(): number {
    return this.#options.healthyMs ?? HEALTHY_MS;
  }

  /** Ends all statements and sessions; what was stored stays. */
  stop(): void {
    this.isUp = false;
    if (this.replica) this.replica.isUp = false;
    if (this.#options.shared) this.#options.shared.isUp = false;
    for (const statement of this.#running) {
      statement.isGone = true;
      statement.ended.resolve();
    }
    this.#running = new Set();
    this.#sessions = new Map();
    this.#inserting = new Set();
    this.#options.network.breakServer(this.name);
  }

  /** Does nothing where it is gone for good. */
  start(): void {
    if (this.isGone) return;
    this.isUp = true;
    if (this.replica) this.replica.isUp = true;
    if (this.#options.shared) this.#options.shared.isUp = true;
  }

  /** Returns whether a statement is being run whose query id begins so. */
  isRunning(queryIdPrefix: string): boolean {
    return [...this.#running].some(({ queryId }) => queryId.startsWith(queryIdPrefix));
  }

  /** Returns for how long each statement has been running that is meant, in milliseconds. */
  running(which: (queryId: string) => boolean): number[] {
    const { nowMs } = this.#options.time;
    return [...this.#running].filter(({ queryId }) => which(queryId)).map(({ beganAtMs }) => nowMs - beganAtMs);
  }

  /** KILL QUERY … SYNC: resolves when the statements have ended. */
  async kill(which: (queryId: string) => boolean): Promise<void> {
    const killed = [...this.#running].filter(({ queryId }) => which(queryId));
    for (const statement of killed) statement.ending ??= 'QUERY_WAS_CANCELLED';
    await Promise.all(killed.map(({ ended }) => ended.promise));
  }

  /** @throws {ClickHouseError} */
  async run(request: Request): Promise<Result> {
    const { time } = this.#options;
    const { queryId, sessionId, timeoutMs } = request;
    const session = sessionId === undefined ? {} : this.#openSession(sessionId, request.goesOn);
    const statement: Running = {
      ...{
        queryId,
        sessionId,
        beganAtMs: time.nowMs,
        ending: undefined,
        ended: Promise.withResolvers<void>(),
        isGone: false,
      },
      stalledUntilMs: time.nowMs + this.stallsNextMs,
    };
    this.stallsNextMs = 0;
    this.#running.add(statement);
    const stopTimer = time.after(timeoutMs, () => {
      statement.ending ??= 'TIMEOUT_EXCEEDED';
    });
    try {
      return await this.#perform(request, statement, session);
    } finally {
      stopTimer();
      this.#running.delete(statement);
      if (sessionId !== undefined) this.#leaveSession(sessionId, request.closesSession);
      statement.ended.resolve();
    }
  }

  /** ClickHouse runs one statement of a session at a time. */
  #openSession(id: string, goesOn: boolean): Session {
    if (this.#options.shared) throw new Error('a statement names a session, and another replica may run the next one');
    for (const { sessionId } of this.#running) if (sessionId === id) refuse('SESSION_IS_LOCKED');
    const { nowMs } = this.#options.time;
    const open = this.#sessions.get(id);
    if (open && nowMs - open.usedAtMs <= SESSION_TIMEOUT_MS) return open.tables;
    if (goesOn) refuse('SESSION_NOT_FOUND');
    const tables = {};
    this.#sessions.set(id, { tables, usedAtMs: nowMs });
    return tables;
  }

  /** ClickHouse closes a session after its last statement, also when that has failed. */
  #leaveSession(id: string, isLast: boolean): void {
    const open = this.#sessions.get(id);
    if (isLast) this.#sessions.delete(id);
    else if (open) open.usedAtMs = this.#options.time.nowMs;
  }

  async #perform(request: Request, statement: Running, session: Session): Promise<Result> {
    const { random, time } = this.#options;
    const { name, parameters } = request;
    const isRefused = random.isTrue(this.refusals);
    await this.#pause(statement, name === 'store-events' && random.isTrue(0.7));
    if (isRefused && random.isTrue(0.5)) refuse('MEMORY_LIMIT_EXCEEDED');
    if (request.namesServer) this.#requireNamed(parameters);
    const result = await this.#effect(request, statement, session);
    if (isRefused) refuse('MEMORY_LIMIT_EXCEEDED');
    await time.wait(random.between(0.1, this.slownessMs / 2));
    return result;
  }

  #requireNamed({ server }: Request['parameters']): void {
    if (server !== '' && server !== this.name) refuse('FUNCTION_THROW_IF_VALUE_IS_NON_ZERO', 'another server answers');
  }

  async #effect(request: Request, statement: Running, session: Session): Promise<Result> {
    const { name, parameters, lines } = request;
    const { shared } = this.#options;
    if (lines.length > this.rowsMax) refuse('MEMORY_LIMIT_EXCEEDED');
    const ends = endedBy(request);
    if (ends) {
      await this.kill(ends);
      return {};
    }
    if (shared) return await shared.run(request, this.#runnerOf(statement));
    switch (name) {
      case 'close-session':
        return {};
      case 'find-repeats':
        // Whoever was fenced since then may look, but stores nothing.
        session.conflicts = new Set(stagedEvents(session).map(eventKey).filter(this.#isBeingInserted));
        return this.#simpleEffect(name, { parameters, lines }, session);
      case 'store-events':
        return await this.#storeEvents(request, statement, session);
      case 'find-longest-statement': {
        const elapsedMs = this.running((queryId) => queryId.startsWith(parameters['groupPrefix'] as string));
        return { rows: [{ seconds: Math.max(0, ...elapsedMs) / 1_000 }] };
      }
      default:
        if (this.replica) return await this.#runAtReplica(this.replica, request, statement, session);
        return this.#simpleEffect(name, { parameters, lines }, session);
    }
  }

  async #runAtReplica(replica: Replica, request: Request, statement: Running, session: Session): Promise<Result> {
    const { name, parameters, lines, insertSettings } = request;
    const call = { session, parameters, lines, nowMs: this.#options.time.dateMs, answering: this.name };
    return await replica.run(name, call, this.#runnerOf(statement), insertSettings);
  }

  #runnerOf(statement: Running): Runner {
    return {
      pause: () => this.#pause(statement),
      wait: async (ms) => {
        await this.#options.time.wait(ms);
        if (statement.isGone) await new Promise<never>(() => {});
      },
    };
  }

  #simpleEffect(name: string, { parameters, lines }: Pick<Request, 'parameters' | 'lines'>, session: Session): Result {
    const effect = STATEMENT_EFFECTS[name];
    if (!effect) throw new Error(`the simulated ClickHouse does not know the statement ${name}`);
    const { dateMs: nowMs } = this.#options.time;
    return effect({ tables: this.tables, session, parameters, lines, nowMs, answering: this.name });
  }

  readonly #isBeingInserted = (key: string): boolean => [...this.#inserting].some((keys) => keys.has(key));

  async #storeEvents(request: Request, statement: Running, session: Session): Promise<Result> {
    const { parameters } = request;
    this.replica?.begin(request.insertSettings);
    // throwIf is evaluated for each row: without rows it refuses nothing.
    if (stagedEvents(session).length > 0) requireNewestEpoch(this.tables, parameters);
    const rows = stagedEvents(session)
      .filter((event) => !isHidden(this.tables, event))
      .map((event) => ({ ...event, month: monthOf(event), fast: columnsOf(event, storedList(event, parameters)) }));
    const keys = new Set(rows.map(eventKey));
    const isConflict = (key: string) => session.conflicts?.has(key) || this.#isBeingInserted(key);
    const conflict = rows.find((row) => isConflict(eventKey(row)));
    if (conflict) this.#options.onConflict(conflict);
    this.#inserting.add(keys);
    try {
      return await this.#insertByMonth(rows, statement, request.insertSettings);
    } finally {
      this.#inserting.delete(keys);
    }
  }

  async #insertByMonth(rows: readonly StoredEvent[], statement: Running, settings: InsertSettings): Promise<Result> {
    for (const [, part] of [...Map.groupBy(rows, ({ month }) => month)].toSorted(([one], [other]) =>
      one < other ? -1 : 1,
    )) {
      await this.#pause(statement);
      if (this.replica) {
        const events = { ...createTables(), events: part };
        await this.replica.insert('events', events, this.#runnerOf(statement), settings);
        continue;
      }
      this.#options.onEvents(part);
      this.tables.events.push(...part);
    }
    return { written: rows.length };
  }

  /**
   * Takes some time.
   *
   * @param isBeginning whether a statement that stalls does so later
   * @throws {ClickHouseError} when the statement was killed meanwhile
   */
  async #pause(statement: Running, isBeginning = false): Promise<void> {
    const { time, random } = this.#options;
    await time.wait(random.between(0.1, this.slownessMs));
    const isStalled = () => !isBeginning && time.nowMs < statement.stalledUntilMs;
    while (isStalled() && !statement.ending && !statement.isGone) await time.wait(STALLED_MS);
    // The connection is broken as well: nobody waits for it.
    if (statement.isGone) await new Promise<never>(() => {});
    if (statement.ending) refuse(statement.ending);
  }
}

/** Returns which statements, by their query ids, a statement ends at the server that runs it; undefined for one that ends none. */
function endedBy({ name, parameters }: Request): ((queryId: string) => boolean) | undefined {
  const { prefix = '', groupPrefix = '', epochPrefix = '' } = parameters as Record<string, string>;
  switch (name) {
    case 'end-own-statements':
      return (queryId) => queryId.startsWith(prefix);
    case 'end-older-statements':
      return (queryId) => queryId.startsWith(groupPrefix) && !queryId.startsWith(epochPrefix);
    default:
      return undefined;
  }
}
