import type { Random } from '../world/random.ts';
import type { VirtualTime } from '../world/virtual-time.ts';
import { type Block, BlockOrder } from './block-order.ts';
import type { BlockNumber, Entry, Keeper } from './keeper.ts';
import { refuse } from './refusal.ts';
import { addRows, copyOfRows, INSERTS, isEmpty, REMOVALS, rowsOf, TABLES } from './replicated-rows.ts';
import { type Call, type Result, STATEMENT_EFFECTS } from './statements.ts';
import { createTables, type StoredEvent, type Tables } from './tables.ts';

/** How soon a replica tries again to do what it could not, in milliseconds. */
const AGAIN_MS = 40;

/** How often a statement looks whether what it waits for is there, in milliseconds. */
const LOOK_MS = 3;

/** How long a part is read that Keeper does not have, in milliseconds at most. */
const ALONE_MS_MAX = 5_000;

/** How a client wants its inserts. */
export interface InsertSettings {
  /** On how many replicas its rows are to be before it ends. */
  readonly quorum: number;
  readonly quorumTimeoutMs: number;
  /** Whether a block that was inserted before counts as inserted. */
  readonly deduplicates: boolean;
}

/** A statement that runs at a replica. */
export interface Runner {
  /** Takes some time. @throws {ClickHouseError} when the statement was ended meanwhile */
  pause(): Promise<void>;
  /** Takes a given time, whether or not the statement is ended. */
  wait(ms: number): Promise<void>;
}

export interface ReplicaOptions {
  readonly name: string;
  readonly time: VirtualTime;
  readonly random: Random;
  readonly keeper: Keeper;
  /** Called with events that become visible at this replica, before they are. */
  readonly onEvents: (rows: readonly StoredEvent[]) => void;
  /** Called when it has removed rows of a table, with what it had before. */
  readonly onRemoved: (table: keyof Tables, before: Tables) => void;
}

/**
 * What makes a simulated ClickHouse a replica: its inserts are parts, which are committed in Keeper and fetched by the others, in any order.
 * Epochs alone are its own.
 */
export class Replica {
  readonly #options: ReplicaOptions;
  tables: Tables = createTables();
  /** Its parts by the numbers of their entries. */
  readonly #parts = new Map<number, Tables>();
  /** The numbers of its parts of events, by those of their entries. */
  readonly #blocks = new Map<number, BlockNumber>();
  /** The numbers of parts that Keeper does not have; each is below those of all entries. */
  readonly #alone = new Set<number>();
  #firstAlone = 0;
  readonly #removals: Entry[] = [];
  readonly order: BlockOrder;
  #isUp = true;
  /** By the server's clock, in milliseconds since 1970. */
  #startedAtMs = 0;
  /** Whether it has a session of Keeper. */
  hasSession = true;
  /** Whether inserts are refused at once while it has none; otherwise they wait for the next one. */
  isReadOnly = false;
  /** By how much it is behind at most, in milliseconds. */
  lagMs = 0;
  /** Whether the next insert does not learn that it has committed. */
  losesNextAnswer = false;
  /** Whether Keeper does not get the next part of events. Its insert does not learn that, and reads find it here for a while. */
  keepsNextAlone = false;
  /** Called with the next part that is committed here. */
  onNextPart: ((entry: Entry) => void) | undefined;

  constructor(options: ReplicaOptions) {
    this.#options = options;
    this.order = new BlockOrder(options.keeper, options.random);
    options.keeper.add(this);
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  set isUp(isUp: boolean) {
    if (isUp && !this.#isUp) this.#startedAtMs = this.#options.time.dateMs;
    this.#isUp = isUp;
  }

  get startedAtMs(): number {
    return this.#startedAtMs;
  }

  /** Its parts of events, as they were inserted. */
  get blocks(): readonly Block[] {
    return [...this.#blocks].map(([entry, block]) => ({ ...block, rows: this.#parts.get(entry)?.events ?? [] }));
  }

  get name(): string {
    return this.#options.name;
  }

  /** It gets a session of Keeper, or loses it. @param isReadOnly whether it then refuses inserts at once */
  setSession(has: boolean, isReadOnly = false): void {
    this.hasSession = has;
    this.isReadOnly = !has && isReadOnly;
  }

  /** Does what a statement does that is not an insert of events. */
  async run(name: string, call: Omit<Call, 'tables'>, runner: Runner, settings: InsertSettings): Promise<Result> {
    if (name === 'look-at-replica')
      return { rows: [{ stuck: this.hasSession ? 0 : 1, behind: Math.floor(this.lagMs / 1_000) }] };
    if (name === 'count-undecided-parts') return { rows: [{ parts: this.#alone.size }] };
    if (name === 'count-replicas')
      return { rows: [{ replicas: this.hasSession ? this.#options.keeper.count : 0, now_ms: call.nowMs }] };
    const table = TABLES[name.replace(/^sync-/, '')];
    if (table && name.startsWith('sync-')) return await this.#sync(table, runner);
    const ofOrder = this.order.run(name, { ...call, tables: this.tables }, this);
    if (ofOrder) return ofOrder;
    const effect = STATEMENT_EFFECTS[name];
    if (!effect) throw new Error(`the simulated ClickHouse does not know the statement ${name}`);
    const [insert, removal] = [INSERTS[name], REMOVALS[name]];
    if (insert) {
      this.#requireQuorum(settings);
      let result: Result = {};
      const rows = rowsOf(this.tables, insert, (tables) => {
        result = effect({ ...call, tables });
      });
      await this.insert(insert.into, rows, runner, settings);
      return result;
    }
    if (removal) {
      await this.#haveSession(runner);
      const remove = (rows: Tables) => void effect({ ...call, tables: rows });
      this.#remove(this.#options.keeper.commit(this, { table: removal, rows: undefined, remove }));
      return {};
    }
    return effect({ ...call, tables: this.tables });
  }

  /** Commits rows, and waits until they are on as many replicas as its client wants. */
  async insert(table: keyof Tables, rows: Tables, runner: Runner, settings: InsertSettings): Promise<void> {
    if (isEmpty(rows[table])) return;
    const { keeper, time } = this.#options;
    await this.#haveSession(runner);
    if (settings.deduplicates && keeper.isRepeated(`${table} ${textOf(rows)}`)) return;
    if (this.keepsNextAlone && table === 'events') this.#keepAlone(rows);
    const entry = await this.#commit(table, rows, runner);
    this.#add(entry, rows);
    this.onNextPart?.(entry);
    this.onNextPart = undefined;
    if (this.losesNextAnswer) {
      this.losesNextAnswer = false;
      refuse('UNKNOWN_STATUS_OF_INSERT');
    }
    const untilMs = time.nowMs + settings.quorumTimeoutMs;
    while (entry.doneBy.size < settings.quorum) {
      if (time.nowMs >= untilMs) refuse('UNKNOWN_STATUS_OF_INSERT');
      await runner.wait(LOOK_MS);
    }
  }

  /** A block of events has its number before it commits. In another session of Keeper it gets another one. */
  async #commit(table: keyof Tables, rows: Tables, runner: Runner): Promise<Entry> {
    const { keeper } = this.#options;
    const [first] = rows.events;
    if (table !== 'events' || !first) return keeper.commit(this, { table, rows, remove: undefined });
    for (;;) {
      const block = keeper.beginBlock(Number(first.month));
      try {
        await runner.pause();
        if (this.hasSession && !keeper.isDropped(this))
          return keeper.commit(this, { table, rows, remove: undefined, block });
      } finally {
        keeper.endBlock(block);
      }
      await this.#haveSession(runner);
    }
  }

  /** @throws a refusal when there are too few replicas, or this one has no session and does not wait for one */
  #requireQuorum({ quorum }: InsertSettings): void {
    const { keeper } = this.#options;
    if (keeper.isDropped(this) || (!this.hasSession && this.isReadOnly)) refuse('TABLE_IS_READ_ONLY');
    if (this.hasSession && keeper.live < quorum) refuse('TOO_FEW_LIVE_REPLICAS');
  }

  /** As {@link #requireQuorum}, for an insert of events. */
  begin(settings: InsertSettings): void {
    this.#requireQuorum(settings);
  }

  /** An insert goes on in another session than the one in which it began. */
  async #haveSession(runner: Runner): Promise<void> {
    for (;;) {
      if (this.#options.keeper.isDropped(this)) refuse('TABLE_IS_READ_ONLY');
      if (this.hasSession) return;
      await runner.pause();
    }
  }

  /** It waits for parts, and not for removals. */
  async #sync(table: keyof Tables, runner: Runner): Promise<Result> {
    const { keeper } = this.#options;
    if (!this.hasSession || keeper.isDropped(this)) refuse('TABLE_IS_READ_ONLY');
    const until = keeper.next;
    while (!keeper.hasParts(this, until, table)) await runner.pause();
    return {};
  }

  /** Is to do what another replica has done. */
  learn(entry: Entry): void {
    const { time, random } = this.#options;
    // Most parts are fetched at once, some much later: they come in any order.
    const ownMs = random.isTrue(0.8) ? random.between(0.5, 6) : random.between(2, 150);
    time.after(ownMs + random.between(0, this.lagMs), () => this.#do(entry));
  }

  #do(entry: Entry): void {
    const { keeper, time } = this.#options;
    if (keeper.isDropped(this) || entry.doneBy.has(this)) return;
    if (!this.isUp || !this.hasSession || !keeper.isThere(entry, this)) {
      time.after(AGAIN_MS, () => this.#do(entry));
      return;
    }
    entry.doneBy.add(this);
    if (entry.rows) this.#add(entry, entry.rows);
    else this.#remove(entry);
  }

  #add(entry: Entry, rows: Tables): void {
    // Another writer has stored the same at another replica: here they are twice for a moment, which readers may see.
    if (entry.table === 'events') for (const number of this.#alone) this.#removeAlone(number);
    const part = copyOfRows(rows);
    for (const { number, table, remove } of this.#removals) {
      if (number > entry.number && table === entry.table) remove?.(part);
    }
    this.#parts.set(entry.number, part);
    if (entry.block) this.#blocks.set(entry.number, entry.block);
    if (part.events.length > 0) this.#options.onEvents(part.events);
    addRows(this.tables, part);
  }

  #remove(entry: Entry): void {
    this.#removals.push(entry);
    for (const [number, part] of this.#parts) if (number < entry.number) entry.remove?.(part);
    const before = this.tables;
    this.#showParts();
    this.#options.onRemoved(entry.table, before);
  }

  #showParts(): void {
    const { epochs, deadLetterTime } = this.tables;
    const tables = { ...createTables(), epochs, deadLetterTime };
    for (const part of this.#parts.values()) addRows(tables, part);
    this.tables = tables;
  }

  /** @throws a refusal: nobody knows whether Keeper has the part */
  #keepAlone(rows: Tables): never {
    const { time, random, onEvents } = this.#options;
    this.keepsNextAlone = false;
    this.#firstAlone -= 1;
    const [number, part] = [this.#firstAlone, copyOfRows(rows)];
    this.#parts.set(number, part);
    this.#alone.add(number);
    onEvents(part.events);
    addRows(this.tables, part);
    time.after(random.between(500, ALONE_MS_MAX), () => this.#removeAlone(number));
    refuse('UNKNOWN_STATUS_OF_INSERT');
  }

  #removeAlone(number: number): void {
    if (!this.#alone.delete(number)) return;
    this.#parts.delete(number);
    this.#showParts();
  }
}

function textOf(rows: Tables): string {
  return JSON.stringify(rows, (_, value) => (value instanceof Map || value instanceof Set ? [...value] : value));
}
