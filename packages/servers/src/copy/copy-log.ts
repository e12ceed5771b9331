import { randomUUID } from 'node:crypto';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { Refused } from '@sluice/shared/config/command-line';
import type { StoredPosition } from '@sluice/storage/clickhouse/known-partitions';

/** How often a run of the command says that it is alive, in milliseconds, and after what silence it counts as ended. */
const ALIVE_MS = 5_000;
const SILENT_MS_MAX = 20_000;

/** The server that is copied. */
export interface CopySource {
  readonly name: string;
  /** The id of its database. */
  readonly id: string;
}

/** What is done of a copy that was broken off. */
export interface CopiedSoFar {
  /** How far the source had stored each partition before anything was copied. */
  readonly positions: readonly StoredPosition[];
  /** How many rows of each partition of the table `events` were copied. */
  readonly events: ReadonlyMap<string, number>;
}

interface StepFields {
  readonly partition?: string;
  readonly rows?: number;
  readonly positions?: readonly StoredPosition[];
}

// The new time is above the stored ones, also after ClickHouse's clock was set back.
const RECORD = `
INSERT INTO copies (run, step, source, source_id, partition, rows, positions, recorded_at)
SELECT
  {run:UUID}, {step:String}, {source:String}, {sourceId:String}, {partition:String}, {rows:UInt64},
  arrayZip(
    {topics:Array(String)}, {partitions:Array(UInt32)}, {offsets:Array(Int64)}, {fingerprints:Array(String)},
    {leaderEpochs:Array(Int32)}
  ),
  greatest(now64(6), max(recorded_at) + toIntervalMicrosecond(1))
FROM copies
WHERE throwIf(
  {step:String} != 'begun' AND (SELECT argMax(run, recorded_at) FROM copies WHERE step = 'begun') != {run:UUID},
  'another run of the command copies to this server'
) = 0`;

const NEWEST = `
SELECT
  toString(any(run)) AS newest,
  argMax(step, recorded_at) = 'ended' AS hasEnded,
  toUnixTimestamp64Milli(now64(3)) - toUnixTimestamp64Milli(max(recorded_at)) AS silentMs
FROM copies
WHERE run = (SELECT argMax(run, recorded_at) FROM copies WHERE step = 'begun')
HAVING count() > 0`;

const STEPS = `
SELECT
  step, source, source_id AS sourceId, partition, rows,
  arrayMap(
    position -> (position.topic, position.partition, toString(position.next_offset), position.fingerprint,
      position.leader_epoch),
    positions
  ) AS places
FROM copies
WHERE step IN ('positions', 'events', 'abandoned')
ORDER BY recorded_at`;

/** Ends what another run has left. SYNC: returns when it has ended. */
const END_OTHERS = `
KILL QUERY WHERE startsWith(query_id, {copies:String}) AND NOT startsWith(query_id, {own:String}) SYNC`;

/** Ends what this run does. */
const END_OWN = 'KILL QUERY WHERE startsWith(query_id, {own:String}) SYNC';

/**
 * A condition of everything that a copy stores: it fails when another run of the command has begun since. That one has ended
 * what began before, so two runs never store at the same time.
 */
export const IS_NEWEST_RUN = `throwIf(
  (SELECT argMax(run, recorded_at) FROM copies WHERE step = 'begun') != {run:UUID},
  'another run of the command copies to this server'
) = 0`;

/** Throws when another run has begun. */
const REQUIRE_NEWEST = `SELECT ${IS_NEWEST_RUN}`;

/** What a run of the command has done of a copy, in a table of the server that is filled. */
export class CopyLog {
  readonly run = randomUUID();
  readonly #client: ClickHouseClient;
  readonly #source: CopySource;
  readonly #queryIdPrefix: string;
  #timer: NodeJS.Timeout | undefined;

  /** @param client of the account for migrations, which runs the statements of a copy */
  constructor(client: ClickHouseClient, database: string, source: CopySource) {
    this.#client = client;
    this.#source = source;
    this.#queryIdPrefix = `sluice-copy/${database}/`;
  }

  /**
   * Becomes the only run that copies to this server, and ends the statements of one that was killed.
   *
   * @throws {Refused} when another one is alive
   * @throws ClickHouse's errors
   */
  async begin(): Promise<void> {
    await refuseOtherRun(this.#client);
    await this.record('begun');
    const [newest] = await rows<Newest>(this.#client, NEWEST);
    if (newest?.newest !== this.run)
      throw new Refused('Another command began to copy to this server at the same time.');
    const query_params = { copies: this.#queryIdPrefix, own: `${this.#queryIdPrefix}${this.run}` };
    await this.#client.command({ query: END_OTHERS, query_params });
    this.#timer = setInterval(() => void this.record('alive').catch(() => undefined), ALIVE_MS);
  }

  /** Says that this run has ended, after what it has begun in ClickHouse has. Never throws. */
  async end(): Promise<void> {
    clearInterval(this.#timer);
    const query_params = { own: `${this.#queryIdPrefix}${this.run}` };
    await this.#client.command({ query: END_OWN, query_params }).catch(() => undefined);
    await this.record('ended').catch(() => undefined);
  }

  /**
   * Makes sure that no other run has begun, before a statement that has no condition. The process may have been suspended for
   * longer than another run took.
   *
   * @throws ClickHouse's error when one has
   */
  async requireNewest(): Promise<void> {
    await this.#client.command({ query: REQUIRE_NEWEST, query_params: { run: this.run } });
  }

  /** @throws ClickHouse's errors, also when another run has begun */
  async record(step: string, { partition = '', rows: count = 0, positions = [] }: StepFields = {}): Promise<void> {
    await this.#client.command({
      query: RECORD,
      query_id: this.queryId(`record-${step}`),
      query_params: {
        ...{ run: this.run, step, source: this.#source.name, sourceId: this.#source.id, partition, rows: count },
        topics: positions.map(({ topic }) => topic),
        partitions: positions.map((position) => position.partition),
        offsets: positions.map(({ nextOffset }) => nextOffset),
        fingerprints: positions.map(({ last }) => last?.fingerprint ?? ''),
        leaderEpochs: positions.map(({ last }) => last?.leaderEpoch ?? -1),
      },
    });
  }

  /** Returns a new id for a statement of this run. */
  queryId(statement: string): string {
    return `${this.#queryIdPrefix}${this.run}/${statement}/${randomUUID()}`;
  }

  /**
   * Returns what is done of the last copy of the source, which has not ended where the database is being filled; `undefined`
   * where nothing of it can be used.
   */
  async copiedSoFar(): Promise<CopiedSoFar | undefined> {
    const steps = await rows<Step>(this.#client, STEPS);
    const since = steps.slice(steps.findLastIndex(({ step }) => step === 'abandoned') + 1);
    const first = since.findLastIndex(({ step }) => step === 'positions');
    const begun = since[first];
    if (begun?.source !== this.#source.name || begun.sourceId !== this.#source.id) return undefined;
    const done = since.slice(first + 1);
    return {
      positions: begun.places.map(([topic, partition, nextOffset, fingerprint, leaderEpoch]) => ({
        ...{ topic, partition, nextOffset: BigInt(nextOffset) },
        last: fingerprint === '' ? undefined : { fingerprint, leaderEpoch },
      })),
      events: new Map(done.map(({ partition, rows: count }) => [partition, count])),
    };
  }
}

/**
 * Makes sure that no other run of the command copies to a server, as far as it has said so lately.
 *
 * @throws {Refused}
 * @throws ClickHouse's errors
 */
export async function refuseOtherRun(client: ClickHouseClient): Promise<void> {
  const [newest] = await rows<Newest>(client, NEWEST);
  if (!newest || newest.hasEnded || newest.silentMs > SILENT_MS_MAX) return;
  const left = Math.ceil((SILENT_MS_MAX - newest.silentMs) / 1_000);
  throw new Refused(`Another command copies to this server. If it was killed, try again in ${left} s.`);
}

interface Newest {
  /** The run that has begun last. */
  readonly newest: string;
  readonly hasEnded: 0 | 1 | boolean;
  readonly silentMs: number;
}

interface Step {
  readonly step: string;
  readonly source: string;
  readonly sourceId: string;
  readonly partition: string;
  readonly rows: number;
  readonly places: readonly (readonly [
    topic: string,
    partition: number,
    nextOffset: string,
    fingerprint: string,
    leaderEpoch: number,
  ])[];
}

async function rows<Row>(client: ClickHouseClient, query: string): Promise<Row[]> {
  return await (await client.query({ query, format: 'JSONEachRow' })).json<Row>();
}
