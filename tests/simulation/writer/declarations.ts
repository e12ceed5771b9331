import { columnsFor } from '@sluice/query-api/manage/fast/fast-properties';
import { columnsOf, type FastList, listOf, newestLists } from '../clickhouse/fast-columns.ts';
import type { StoredEvent } from '../clickhouse/tables.ts';
import type { Random } from '../world/random.ts';
import { nameOf } from './event-identity.ts';
import { WORKSPACE } from './load.ts';
import type { Server } from './server.ts';
import type { World } from './world.ts';

/** The properties of the load's events, and one that none of them has. */
const PROPERTIES = ['plan', 'seats', 'tags', 'missing'];

/** Those that get a column for many different values. */
const VARIED = new Set(['seats']);

/** How often somebody declares something, in milliseconds on average; and how often servers get what others have. */
const DECLARING_MS = 400;
const LEVELLING_MS = 300;

/** A workspace declares and withdraws fast properties all the time; each server comes to know of it at another moment. */
export class Declarations {
  readonly #world: World;
  readonly #random: Random;
  /** All lists that were ever declared, in their order. */
  readonly #lists: FastList[] = [];

  constructor(world: World, random: Random) {
    this.#world = world;
    this.#random = random;
  }

  /** @param untilMs when the last list is declared */
  start(untilMs: number): void {
    const { time, servers } = this.#world;
    for (let atMs = 0; atMs < untilMs; atMs += this.#random.between(1, 2 * DECLARING_MS)) {
      time.after(atMs, () => this.#declare());
    }
    if (servers.length === 1) return;
    for (const server of servers) this.#levelNow(server);
  }

  /** It is decided on the first server, by what that has. */
  #declare(): void {
    const [first] = this.#world.servers;
    if (!first?.clickhouse.isUp) return;
    const wanted = PROPERTIES.filter(() => this.#random.isTrue(0.5));
    const before = newestLists(first.clickhouse.tables.fastLists)[0]?.names ?? [];
    const names = columnsFor(wanted, before, VARIED);
    const list = { workspace: WORKSPACE, set: this.#setOf(names), names, declared: this.#lists.length };
    this.#lists.push(list);
    first.clickhouse.tables.fastLists.push(list);
    this.#world.note(`${first.clickhouse.name}: declared as ${list.set}: ${names.join()}`);
  }

  /** Equal names have equal sets, and no others do. */
  #setOf(names: readonly string[]): string {
    if (names.length === 0) return '0';
    const known = this.#lists.find((list) => list.names.join() === names.join());
    return known?.set ?? String((1 + new Set(this.#lists.map(({ set }) => set)).size) << 16);
  }

  /** A server gets all lists that any server has, as long as it is there. */
  #levelNow(server: Server): void {
    const { time } = this.#world;
    time.after(this.#random.between(1, 2 * LEVELLING_MS), () => {
      if (server.clickhouse.isUp) this.#level(server);
      this.#levelNow(server);
    });
  }

  #level({ clickhouse }: Server): void {
    const known = new Set(
      this.#world.servers.flatMap(({ clickhouse: { tables } }) => tables.fastLists.map(({ declared }) => declared)),
    );
    clickhouse.tables.fastLists = this.#lists.filter(({ declared }) => known.has(declared));
  }

  /** Returns what is wrong with the columns of a row: by its own set, one of them has the value of another property. */
  wrongColumns(row: StoredEvent): string | undefined {
    const [set, { values }] = [listOf(row.fast), row.fast];
    const list = this.#lists.find((one) => one.set === set && one.workspace === row.workspace_id);
    if (!list && set !== '0') return `has columns of the set ${set}, which nobody has declared`;
    const expected = columnsOf(row, list);
    const wrong = values.findIndex((value, index) => value !== expected.values[index]);
    if (wrong >= 0) {
      return `has ${values[wrong]} in the column ${wrong + 1} of the set ${set}, and not ${expected.values[wrong]}`;
    }
    if (row.fast.set !== expected.set) return `says ${row.fast.set} of its columns, and not ${expected.set}`;
    return undefined;
  }

  /** Returns what is missing in the end: servers that do not have the same lists, or an event that lacks what was declared last. */
  missing(): string | undefined {
    const { servers } = this.#world;
    const texts = new Set(servers.map(({ clickhouse: { tables } }) => JSON.stringify(newestLists(tables.fastLists))));
    if (texts.size > 1) return 'not all servers have the list that was declared last';
    const unfilled = servers.flatMap(({ clickhouse: { tables } }) => {
      const newest = newestLists(tables.fastLists);
      return tables.events.filter(({ workspace_id, fast }) =>
        newest.some(({ workspace, set }) => workspace === workspace_id && set !== listOf(fast)),
      );
    });
    return unfilled[0] && `${nameOf(unfilled[0])} does not have the columns that were declared last`;
  }
}
