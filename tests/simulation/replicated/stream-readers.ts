import { eventKey, type StoredEvent } from '../clickhouse/tables.ts';
import type { Random } from '../world/random.ts';
import type { World } from '../writer/world.ts';
import type { PlacedReplica, ReplicaSet } from './replica-set.ts';

/** How long a reader waits between two pages at most, in milliseconds. */
const PAUSE_MS_MAX = 400;

/** Within which time after everything is stored it has to be sent, in milliseconds. */
const SENT_MS = 60_000;

const LOOK_MS = 200;

/** Up to where a reader has been sent everything: a number, and the last event of it unless all were sent. */
interface Position {
  readonly number: number;
  readonly event: StoredEvent | undefined;
}

/** An event with the number that its block got. */
interface Numbered {
  readonly number: number;
  readonly row: StoredEvent;
}

/** A client of a stream, which reads small pages, each from any replica, as query-api would. */
class StreamReader {
  readonly name: string;
  readonly #world: World;
  readonly #set: ReplicaSet;
  readonly #random: Random;
  readonly #received = new Set<string>();
  /** What was stored somewhere when it began: it may be sent it, and need not. */
  #before: ReadonlySet<string> = new Set();
  #position: Position | undefined;
  #replica: PlacedReplica | undefined;

  constructor(name: string, world: World, set: ReplicaSet, random: Random) {
    this.name = name;
    this.#world = world;
    this.#set = set;
    this.#random = random;
  }

  start(): void {
    this.#world.time.after(this.#random.between(10, PAUSE_MS_MAX), () => {
      this.#readPage();
      this.start();
    });
  }

  /** Returns an event that is stored and was not sent, if there is one. */
  get missing(): string | undefined {
    if (!this.#position) return undefined;
    const stored = this.#set.listed.flatMap(({ clickhouse }) => clickhouse.tables.events.map(identityOf));
    return stored.find((event) => !this.#received.has(event) && !this.#before.has(event));
  }

  #readPage(): void {
    const { listed } = this.#set;
    const mayStay = this.#replica && listed.includes(this.#replica) && this.#random.isTrue(0.7);
    if (!mayStay) this.#replica = listed[this.#random.below(listed.length)];
    const { replica } = this.#replica ?? {};
    if (!replica?.isUp) return;
    const end = replica.order.reached(replica.startedAtMs);
    if (end === 0) return;
    if (!this.#position) {
      this.#position = { number: end, event: undefined };
      this.#before = new Set(this.#set.tables.flatMap(({ events }) => events.map(identityOf)));
      return;
    }
    const { number, event } = this.#position;
    if (end < number || (end === number && !event)) return;
    const after = event ? number - 1 : number;
    const found = replica.blocks.flatMap((block) => {
      const own = replica.order.numberOf(block, after, end);
      return own === 0 ? [] : block.rows.map((row) => ({ number: own, row }));
    });
    const later = found.filter((one) => one.number > number || (event && compare(one.row, event) > 0));
    later.sort((one, other) => one.number - other.number || compare(one.row, other.row));
    const limit = later[this.#random.below(6)];
    // LIMIT … WITH TIES: an event that was sent again after a deletion may be beside the former one.
    const page = limit ? later.filter((one) => one.number < limit.number || isUpTo(one, limit)) : later;
    for (const { row } of page) this.#receive(row);
    const last = page.at(-1);
    this.#position =
      page.length < later.length && last ? { number: last.number, event: last.row } : { number: end, event: undefined };
  }

  #receive(row: StoredEvent): void {
    const event = identityOf(row);
    if (this.#received.has(event)) this.#world.report(`${this.name} is sent ${JSON.stringify(row)} again`);
    this.#received.add(event);
  }
}

/** Clients of streams of replicas, each of which has to be sent every event once. */
export class StreamReaders {
  readonly #world: World;
  readonly #readers: readonly StreamReader[];

  constructor(world: World, set: ReplicaSet, random: Random) {
    this.#world = world;
    this.#readers = ['one', 'other'].map((name) => new StreamReader(`the ${name} stream`, world, set, random));
  }

  start(): void {
    for (const reader of this.#readers) reader.start();
  }

  /** Lets time pass until each was sent everything. */
  async untilSent(): Promise<void> {
    const { time } = this.#world;
    const isWrong = () => this.#world.violation !== undefined;
    const until = time.nowMs + SENT_MS;
    for (const reader of this.#readers) {
      for (let missing = reader.missing; missing !== undefined && !isWrong(); missing = reader.missing) {
        if (time.nowMs >= until) this.#world.report(`${reader.name} is not sent ${missing}`);
        else await time.runUntil(time.nowMs + LOOK_MS, isWrong);
      }
    }
  }
}

/** An event that is sent again after the deletion of its user is a new one. */
function identityOf(row: StoredEvent): string {
  return `${eventKey(row)}\0${row.received_at}`;
}

function isUpTo(one: Numbered, other: Numbered): boolean {
  return one.number === other.number && compare(one.row, other.row) <= 0;
}

function compare(one: StoredEvent, other: StoredEvent): number {
  if (one.timestamp !== other.timestamp) return one.timestamp - other.timestamp;
  return eventKey(one) < eventKey(other) ? -1 : Number(eventKey(one) > eventKey(other));
}
