import {
  CLOCKS_MS,
  type QueryRunner,
  RequestStore,
  type Row,
  type Sql,
  type Stores,
  serverNames,
  type Tables,
} from '../store/store.ts';
import {
  asRecordedProgress,
  lastWholeBlock,
  type ProgressOfServer,
  type RecordedProgress,
  recordedBeforeQuery,
  StoredThrough,
  throughQuery,
} from './progress-query.ts';
import { encodePosition, endOfBlock, type StreamOrigin, type StreamPosition } from './stream-position.ts';

/*
 * How a stream goes on at another server. Block numbers of the two have nothing in common, and each of them has stored some
 * partitions further than the other one. What both share is Kafka's log, and causality: nothing is stored before it was
 * appended. So
 *
 * - an id carries a time T: everything that was appended before T has been sent. It is the newest `through` that the writers of
 *   its server recorded with a block up to that of the id.
 * - at the other server, what was stored by T on its own clock was appended before T, so it has been sent: the stream goes on
 *   behind the newest block that was recorded by then. What comes later in its order may have been sent before, too, and comes
 *   again. The `through` of that server would be wrong: in blocks up to the one recorded with it, partitions in which the server
 *   was further have later events, which the stream would never get.
 *
 * T is a time of the clock of Kafka's brokers or of a writer, and compared with that of ClickHouse.
 */

/** How many times one statement has; they are part of its address. */
const TIMES_MAX = 500;

/** Where a stream goes on at a server. */
export interface Start {
  readonly position: StreamPosition;
  /** As in {@link StreamOrigin}. */
  readonly throughMs: number;
  /** What was sent before the start may come again when it was appended since then, in milliseconds since 1970. */
  readonly repeatsFromMs: number;
}

export interface StreamServerOptions {
  readonly name: string;
  /** The id that its database has recorded. */
  readonly databaseId: string;
  readonly queryRunner: QueryRunner;
  /** Have this server only. */
  readonly stores: Stores;
  readonly signal: AbortSignal;
  /** Whether it is a replica: a position at one of them holds at all. */
  readonly isReplica: boolean;
}

/**
 * A server of a file, or servers with the ranges of partitions, whose blocks the positions of a hub count: its ids, and where
 * streams of others go on.
 */
export class StreamServer {
  readonly #options: StreamServerOptions;
  readonly #origin: Omit<StreamOrigin, 'throughMs'>;
  /** By the number of the server. */
  readonly #stored: ReadonlyMap<number, StoredThrough>;

  constructor(options: StreamServerOptions) {
    this.#options = options;
    // The end is random in all versions of uuids.
    const databases = serverNames(options.databaseId).map((id) => id.slice(-8));
    this.#origin = { server: options.name, database: databases.join('') };
    this.#stored = new Map(databases.map((_, index) => [databases.length === 1 ? 0 : index + 1, new StoredThrough()]));
  }

  /** Notes what writers have recorded last. */
  note(progress: readonly ProgressOfServer[]): void {
    for (const { shard, ...one } of progress) this.#stored.get(shard)?.add(one);
  }

  /** Whether the position of an id counts the blocks of this database. */
  isOf({ server, database }: StreamOrigin): boolean {
    return (this.#options.isReplica || server === this.#origin.server) && database === this.#origin.database;
  }

  /** Returns until when everything is sent to a listener, in milliseconds since 1970, if it was so until `knownMs` before. */
  throughOf(position: StreamPosition, knownMs: number): number {
    const times = [...this.#stored].map(([shard, stored]) => {
      const place = position.get(shard);
      return place ? stored.at(place) : 0;
    });
    return Math.max(knownMs, Math.min(...times));
  }

  idOf(position: StreamPosition, knownMs: number, nowMs: number): string {
    return encodePosition(position, nowMs, { ...this.#origin, throughMs: this.throughOf(position, knownMs) });
  }

  /** As {@link throughOf}; what is not known is looked up. @throws {Problem} */
  async lookUpThrough(position: StreamPosition, knownMs: number): Promise<number> {
    const known = this.throughOf(position, knownMs);
    if (known > 0 || position.size < this.#stored.size) return known;
    const blocks = new Map([...position].map(([shard, place]) => [shard, Math.max(0, lastWholeBlock(place))]));
    const [row] = await this.#read((tables) => throughQuery(tables, blocks));
    return row ? (row[0] as number) : 0;
  }

  /**
   * Returns a function that returns where a stream goes on here that has everything that was appended before one of some times,
   * or a later one. `undefined`: nothing was recorded that long ago.
   *
   * @throws {Problem}
   */
  async startsFrom(times: readonly number[]): Promise<(throughMs: number) => Start | undefined> {
    const sorted = [...new Set(times.map((time) => time - CLOCKS_MS))].sort((one, other) => one - other);
    const recorded: RecordedProgress[] = [];
    for (let first = 0; first < sorted.length; first += TIMES_MAX) {
      const some = sorted.slice(first, first + TIMES_MAX);
      const rows = await this.#read((tables) => recordedBeforeQuery(tables, some));
      recorded.push(...rows.map(asRecordedProgress));
    }
    return (throughMs) => {
      const starts = [...this.#stored.keys()].flatMap((shard) => {
        const ofShard = recorded.filter((one) => one.shard === shard);
        return ofShard.findLast(({ recordedMs }) => recordedMs <= throughMs - CLOCKS_MS) ?? [];
      });
      if (starts.length < this.#stored.size) return undefined;
      const position = new Map(starts.map(({ shard, block }) => [shard, endOfBlock(block)]));
      return { position, throughMs, repeatsFromMs: Math.min(...starts.map((start) => start.throughMs)) };
    };
  }

  #read(statement: (tables: Tables) => Sql): Promise<readonly Row[]> {
    const { queryRunner, stores, signal } = this.#options;
    const store = new RequestStore(stores);
    return queryRunner.all({ kind: 'stream_progress', urgent: true, workspace: '', store, signal, statement });
  }
}
