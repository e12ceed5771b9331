import { setMaxListeners } from 'node:events';
import { atMost, backoff } from '@sluice/shared/base/retry';
import { Turns } from '@sluice/shared/base/turns';
import { Problem } from '@sluice/shared/http/problem';
import { LINKED_USER, OwnersOfVisitors, readMerges } from '../records/records.ts';
import {
  ConnectionFailure,
  isOutOfTime,
  NO_IDENTITIES,
  type QueryRunner,
  queryStringOf,
  RequestStore,
  type RowBatches,
  type Stores,
} from '../store/store.ts';
import { asNewestProgress, notReached, type ProgressOfServer } from './progress-query.ts';
import { eventData, type StreamListener } from './stream-listener.ts';
import { endOfBlock, type StreamPosition } from './stream-position.ts';
import {
  asStreamRow,
  newestPosition,
  newestQuery,
  newestWithProgressQuery,
  pageQuery,
  type Range,
  recordsQuery,
  type Shown,
  type StreamRow,
  type StreamSelection,
} from './stream-query.ts';

/** Events of one query. A query that has more is followed by another one. */
const PAGE_EVENTS = 1_000;

/** The weight of the selections of one query, in bytes; more of them are read by several queries, a single one by one. */
const WEIGHT_MAX = 100_000;

/** The weight of selections together with the merges that their query names, in bytes: half of what it may have. */
const NAMED_MAX = 512 * 1_024;

/** How long queries for some listeners may begin, in milliseconds. The others are behind then, and have their turns. */
const TURN_MS = 2_000;

/** How long a query waits for clients when all of them are slow, in milliseconds. */
const DRAIN_MS = 250;

/**
 * How long a query waits for what may be shown of other workspaces, in milliseconds, once it is known of one. A deletion has to be in force
 * within a second, so what is known is not to become old meanwhile.
 */
const SHOWN_MS = 250;

/** How long a listener rests at first and at most that nothing could be read for in time, in milliseconds. */
const REST_MS = 1_000;
const REST_MS_MAX = 60_000;

/** How many records of the order of replicas a page has of each server at most. */
const RECORDS_MAX = 20_000;

/** Into how many pieces a range of blocks is cut that is too expensive as a whole. */
const PIECES = 16;

/** Listeners with equal selections. */
type Group = readonly StreamListener[];

export interface StreamReaderOptions {
  readonly queryRunner: QueryRunner;
  /** Have one store only, whose block numbers count. */
  readonly stores: Stores;
  readonly signal: AbortSignal;
  readonly onSent: (events: number) => void;
  /** Called with what writers have recorded last. Default: it is not read. */
  readonly onProgress?: ((progress: readonly ProgressOfServer[]) => void) | undefined;
  /** Whether ClickHouse replicates the events: then a server is told what it has reached. Default: false. */
  readonly isReplica?: boolean;
}

/** A listener that a query ran out of time for. */
interface Apart {
  /** Until when it rests, on the clock of `performance`. */
  readonly restsUntil: number;
  readonly delays: Generator<number, never>;
}

/** Reads the stored events for many listeners at once. Two of its queries run at a time, and take no slot from others. */
export class StreamReader {
  readonly #options: StreamReaderOptions;
  /** Those that are read alone, until a query for one of them takes no longer than {@link TURN_MS}. */
  readonly #apart = new WeakMap<StreamListener, Apart>();

  constructor(options: StreamReaderOptions) {
    this.#options = options;
  }

  /** Returns up to where everything is visible. @throws {Problem} */
  async newest(): Promise<StreamPosition> {
    const { queryRunner, stores, signal, onProgress, isReplica } = this.#options;
    const store = new RequestStore(stores);
    const rows = await queryRunner.all({
      statement: onProgress ? newestWithProgressQuery : newestQuery,
      ...({ kind: 'stream_newest', urgent: true, workspace: '', store, signal } as const),
    });
    if (onProgress && rows[0]) onProgress(asNewestProgress(rows[0][2]));
    if (isReplica && rows.some(([, newest]) => newest === 0)) throw notReached();
    return newestPosition(rows);
  }

  /**
   * Returns up to where a page is read whose events come after a position, at most up to another one: a page of replicas has a limited number of
   * records. @throws {Problem}
   */
  async pageEnd(from: StreamPosition, to: StreamPosition): Promise<StreamPosition> {
    const { queryRunner, stores, signal, isReplica } = this.#options;
    if (!isReplica || [...to].every(([shard, { block }]) => block - (from.get(shard)?.block ?? 0) <= RECORDS_MAX))
      return to;
    const store = new RequestStore(stores);
    const { orderRecords } = (await store.current()).tables;
    if (orderRecords === undefined) return to;
    const rows = await queryRunner.all({
      statement: () => recordsQuery(orderRecords, { from, to, limit: RECORDS_MAX }),
      ...({ kind: 'stream_newest', urgent: true, workspace: '', store, signal } as const),
    });
    const full = (rows as readonly (readonly [number, number, number])[]).filter(([, count]) => count === RECORDS_MAX);
    return new Map([...to, ...full.map(([shard, , last]) => [shard, endOfBlock(last)] as const)]);
  }

  /** Whether a listener has to be read alone: a query for it and others, or for it alone, took too long. */
  isApart(listener: StreamListener): boolean {
    return this.#apart.has(listener);
  }

  /** Whether nothing is read for a listener for a while, since nothing could be read in time. */
  isResting(listener: StreamListener): boolean {
    return performance.now() < (this.#apart.get(listener)?.restsUntil ?? 0);
  }

  /**
   * Sends listeners their events of a range, or the first ones of many, the first listener before all others. All of them
   * must be at `from` at least. Some listeners stay where they are when it takes long, and those of a query that fails
   * while ClickHouse answers others. A listener for which a query over one insert needs more than its budget of
   * memory, or returns more bytes than it may, is ended. Time is no such budget, and neither is what the query reads: others may
   * have used them. Those that a query ran out of time for are {@link isApart}. Those of a workspace of which it is not known in time what may
   * be shown, stay where they are.
   *
   * @param waitsForFirst whether it takes as long as it takes to learn that of the first listener's workspace. Default: no
   * @throws {Problem} when ClickHouse is away: each listener is where it was, or further
   */
  async deliver(listeners: readonly StreamListener[], range: Range, waitsForFirst = false): Promise<void> {
    const [first, ...others] = Map.groupBy(listeners, ({ request }) => request.key).values();
    if (!first) return;
    const deadline = performance.now() + TURN_MS;
    const awaited = waitsForFirst ? first[0]?.request.selection.workspace : undefined;
    for (const groups of packed([first, ...others.sort((one, other) => weightOf(one) - weightOf(other))])) {
      await this.#deliverTo(groups, range, awaited, deadline);
      if (performance.now() > deadline) return;
    }
  }

  /** A query may fail for one selection, and others must not suffer from it: it is found by halving. */
  async #deliverTo(
    groups: readonly Group[],
    range: Range,
    awaited: string | undefined,
    deadline: number,
  ): Promise<void> {
    try {
      await this.#deliverPage(groups, range, awaited);
      if (groups.length === 1 && performance.now() <= deadline)
        for (const listener of groups.flat()) this.#apart.delete(listener);
    } catch (error) {
      if (this.#options.signal.aborted) throw error;
      const mayPass = isPassing(error);
      // Whether ClickHouse is away for all of them.
      if (mayPass) await this.newest();
      const isTooSlow = error instanceof Problem && isOutOfTime(error.cause);
      const piece = firstPiece(range);
      if (isTooSlow && groups.length === 1 && piece) return await this.#deliverTo(groups, piece, awaited, deadline);
      if (isTooSlow) return this.#setApart(groups);
      if (mayPass && (groups.length === 1 || performance.now() > deadline)) return;
      const half = Math.ceil(groups.length / 2);
      if (groups.length > 1) {
        await this.#deliverTo(groups.slice(0, half), range, awaited, deadline);
        await this.#deliverTo(groups.slice(half), range, awaited, deadline);
      } else if (piece) await this.#deliverTo(groups, piece, awaited, deadline);
      else for (const listener of groups.flat()) listener.fail(error);
    }
  }

  /** One that was read alone already rests, for longer each time. */
  #setApart(groups: readonly Group[]): void {
    for (const listener of groups.flat()) {
      const delays = this.#apart.get(listener)?.delays ?? backoff(REST_MS, REST_MS_MAX);
      const restMs = groups.length === 1 ? delays.next().value : 0;
      this.#apart.set(listener, { delays, restsUntil: performance.now() + restMs });
    }
  }

  /** @param awaited a workspace of which it is waited for what may be shown. Default: any */
  async #deliverPage(all: readonly Group[], { from, to }: Range, awaited: string | undefined): Promise<void> {
    const { queryRunner, stores, signal, onSent } = this.#options;
    const store = new RequestStore(stores);
    const shownAtMs = performance.now();
    const weight = all.reduce((sum, group) => sum + weightOf(group), 0);
    const shown = withFewMerges(await this.#readShown(selectionsOf(all), awaited, store), weight);
    const groups = all.filter((group) => selectionsOf([group]).every(({ workspace }) => shown.has(workspace)));
    const selections = selectionsOf(groups);
    const persons = new PersonsOfPage(queryRunner, store, signal, selections, shown);
    await using batches: RowBatches = queryRunner.rows({
      statement: (tables) => pageQuery(tables, selections, shown, { from, to, limit: PAGE_EVENTS }),
      ...({ kind: 'stream_events', pool: 'reports', urgent: true, graceMs: 0, workspace: '', store, signal } as const),
      isFollowed: groups.length > 1 || firstPiece({ from, to }) !== undefined,
    });
    const turns = new Turns();
    let open = new Set(groups.flat());
    let rows = 0;
    let last: StreamRow | undefined;
    for await (const batch of batches) {
      open = await this.#openOf(open);
      // What they have not been sent is read again.
      if (open.size === 0) return;
      let sent = 0;
      const found = batch.map(asStreamRow);
      const users = await persons.ofRows(found);
      for (const row of found) {
        // Its listeners may have gone on at another server.
        if (signal.aborted) return;
        const takers = row.selections.flatMap((index) => groups[index] ?? []).filter((listener) => open.has(listener));
        if (takers.length > 0) {
          const data = eventData(row);
          const linked = users.get(row);
          const ofPerson = linked === undefined ? data : eventData(row, { [LINKED_USER]: linked || null });
          const dataFor = ({ request }: StreamListener) => (request.selection.identity === 'linked' ? ofPerson : data);
          const place = placeOf(row, { from, to });
          sent += takers.filter((listener) => listener.send(row, dataFor(listener), place, shownAtMs)).length;
          // Once left out, it stays so: it would miss this event.
          for (const listener of takers) if (listener.isLeftOut) open.delete(listener);
        }
        last = row;
        rows += 1;
        await turns.next();
      }
      onSent(sent);
    }
    if (signal.aborted) return;
    const end = rows < PAGE_EVENTS || last === undefined ? to : placeOf(last, { from, to });
    for (const listener of open) listener.reach(end);
  }

  /**
   * Reads which events may be shown, by workspace. Those are left out where that fails or is slow: other workspaces must not wait.
   *
   * @throws {Problem} when it fails for all
   */
  async #readShown(
    selections: readonly StreamSelection[],
    awaited: string | undefined,
    store: RequestStore,
  ): Promise<ReadonlyMap<string, Shown>> {
    const shown = new Map<string, Shown>();
    const reads = new Map<string | undefined, Promise<void>>();
    for (const [workspace, own] of Map.groupBy(selections, (selection) => selection.workspace)) {
      const read = this.#readShownOf(workspace, own, store);
      reads.set(
        workspace,
        read.then((found) => void shown.set(workspace, found)),
      );
    }
    const all = Promise.allSettled(reads.values());
    await reads.get(awaited)?.catch(() => undefined);
    await Promise.any(reads.values()).catch(() => Promise.all(reads.values()));
    await atMost(SHOWN_MS, all);
    // What comes later is not for this page.
    return new Map(shown);
  }

  async #readShownOf(workspace: string, selections: readonly StreamSelection[], store: RequestStore): Promise<Shown> {
    const { queryRunner, signal } = this.#options;
    const { visibility } = await store.current();
    const hidden = await visibility.hiddenCondition(workspace);
    const isAsked = selections.some(({ identity }) => identity === 'linked');
    const context = { workspace, store, signal };
    const { areLinked, areMerged } = isAsked ? await queryRunner.identities(context) : NO_IDENTITIES;
    const merges = areMerged ? await readMerges(queryRunner, context) : undefined;
    return { hidden, keptFromMs: await visibility.keptFrom(workspace), isLinked: areLinked, merges };
  }

  /** Returns those that take more rows. Once left out, a listener stays so: it would miss the rows in between. */
  async #openOf(listeners: ReadonlySet<StreamListener>): Promise<Set<StreamListener>> {
    const all = [...listeners];
    // Without any, nothing would ever end the wait.
    if (all.length > 0 && !all.some(({ isOpen }) => isOpen)) {
      const signal = AbortSignal.any([this.#options.signal, AbortSignal.timeout(DRAIN_MS)]);
      setMaxListeners(all.length, signal);
      await Promise.race(all.map((listener) => listener.drained(signal)));
    }
    return new Set(all.filter(({ isOpen }) => isOpen));
  }
}

/** Finds whose the events of a page are, for the selections that ask for persons. What is linked later changes nothing of what was sent. */
class PersonsOfPage {
  readonly #selections: readonly StreamSelection[];
  readonly #owners = new Map<string, OwnersOfVisitors>();

  constructor(
    queryRunner: QueryRunner,
    store: RequestStore,
    signal: AbortSignal,
    selections: readonly StreamSelection[],
    shown: ReadonlyMap<string, Shown>,
  ) {
    this.#selections = selections;
    for (const { workspace, identity } of selections) {
      if (identity !== 'linked' || this.#owners.has(workspace)) continue;
      const { isLinked = false, merges } = shown.get(workspace) ?? {};
      const context = { workspace, store, signal, isLinked, merges };
      this.#owners.set(workspace, new OwnersOfVisitors(queryRunner, context, { fields: [] }));
    }
  }

  /** Returns the user of the person of each row that is for such a selection; the empty text for nobody. */
  async ofRows(rows: readonly StreamRow[]): Promise<ReadonlyMap<StreamRow, string>> {
    const users = new Map<StreamRow, string>();
    for (const [workspace, owners] of this.#owners) {
      const isAsked = (index: number) => {
        const selection = this.#selections[index];
        return selection?.workspace === workspace && selection.identity === 'linked';
      };
      const own = rows.filter(({ selections }) => selections.some(isAsked));
      const found = await owners.ofEvents(own.map(({ event }) => event));
      for (const [index, row] of own.entries()) users.set(row, found[index] ?? '');
    }
    return users;
  }
}

/** Returns the same, where the query finds merges by itself that it has no room to name. */
function withFewMerges(shown: ReadonlyMap<string, Shown>, weight: number): ReadonlyMap<string, Shown> {
  let room = NAMED_MAX - weight;
  const fitting = new Map<string, Shown>();
  for (const [workspace, one] of shown) {
    const { merges = [] } = one;
    const named = merges === 'many' ? [] : merges.flatMap(({ merged, person }) => [merged, person]);
    room -= queryStringOf({}, { named }).length;
    fitting.set(workspace, room < 0 && named.length > 0 ? { ...one, merges: 'many' } : one);
  }
  return fitting;
}

function selectionsOf(groups: readonly Group[]): readonly StreamSelection[] {
  return groups.flatMap(([listener]) => (listener ? [listener.request.selection] : []));
}

function weightOf([listener]: Group): number {
  return listener?.request.weight ?? 0;
}

/** Distributes groups over queries that are not too long, in their order. */
function packed(groups: readonly Group[]): Group[][] {
  const queries: Group[][] = [];
  let weight = Number.POSITIVE_INFINITY;
  for (const group of groups) {
    weight += weightOf(group);
    if (weight <= WEIGHT_MAX) queries.at(-1)?.push(group);
    else {
      queries.push([group]);
      weight = weightOf(group);
    }
  }
  return queries;
}

/** Returns the position of a row of a range: the rows of lower shards come before it, those of higher ones after it. */
function placeOf({ shard, place }: StreamRow, { from, to }: Range): StreamPosition {
  return new Map([...from, ...[...to].filter(([other]) => other < shard), [shard, place]]);
}

const PASSING: readonly string[] = ['store_unavailable', 'overloaded'];

/** Whether the same query may succeed later. */
function isPassing(error: unknown): boolean {
  return error instanceof ConnectionFailure || (error instanceof Problem && PASSING.includes(error.code));
}

/** Returns the beginning of a range, or `undefined` when no server has more than one block in it. */
function firstPiece({ from, to }: Range): Range | undefined {
  const cut = [...to].map(([shard, { block }]) => {
    const start = from.get(shard)?.block ?? 0;
    return { shard, block, end: Math.min(block, start + Math.max(1, Math.ceil((block - start) / PIECES))) };
  });
  if (cut.every(({ block, end }) => end === block)) return undefined;
  return { from, to: new Map(cut.map(({ shard, end }) => [shard, endOfBlock(end)])) };
}
