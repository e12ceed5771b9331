import { ClickHouseError } from '@clickhouse/client';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { ErrorCodes } from '@sluice/shared/clickhouse/error-codes';
import {
  type Epoch,
  Fenced,
  hasOtherLeader,
  isPassed,
  type JoinedGeneration,
  newestOf,
  nextEpoch,
  type OwnEpoch,
  type RecordedEpoch,
} from '../protocol/epoch.ts';
import { TAKE_OVER_STEPS, type TakeOverStep } from '../protocol/steps.ts';
import type { Place } from './replicas.ts';
import type { SharedReplicas } from './shared-replicas.ts';
import { STATEMENTS } from './statements.ts';

export interface OwnershipOptions {
  readonly client: ClickHouseClient;
  readonly groupId: string;
  /** Unique among all writers, past ones included. */
  readonly writerId: string;
  /** Whether Kafka counts this member to the group now, and it has not joined a later generation. */
  readonly isMember: (memberId: string, generation: number) => Promise<boolean>;
  /** Ends statements wherever they run, where any replica may run them. Default: at the servers at which the writer takes over. */
  readonly everywhere?: Pick<SharedReplicas, 'end'> | undefined;
}

/** Returns how the query ids of everything begin that writers of a group do in an epoch. */
export function groupPrefixOf(groupId: string): string {
  return `sluice-writer/${encodeURIComponent(groupId)}/`;
}

/** Makes sure that a partition has one owner at a time, whose inserts ClickHouse accepts. */
export class Ownership {
  readonly #options: OwnershipOptions;
  readonly #groupPrefix: string;

  constructor(options: OwnershipOptions) {
    this.#options = options;
    this.#groupPrefix = groupPrefixOf(options.groupId);
  }

  /**
   * Becomes an owner of the partitions that were assigned in a generation. It records the epoch, from which moment on no
   * insert of an older epoch can begin, and ends the statements of older epochs that are running. Where there are other replicas, it does so
   * at each: whoever owned the partitions before may have stored at any. Where any replica may run them, they are ended wherever they are.
   *
   * @param joined its `signal` aborts when the assignment is over; nothing is recorded after that
   * @param server the name of the ClickHouse server at which it takes over; another one refuses; empty: any will do
   * @param others the other replicas. Default: there are none
   * @throws {Fenced} when a newer generation has begun meanwhile
   * @throws ClickHouse's and kafkajs's errors; the call may be repeated
   */
  async begin(
    joined: JoinedGeneration & { readonly signal?: AbortSignal },
    server: string,
    others: readonly Place[] = [],
  ): Promise<OwnEpoch> {
    const places = [{ client: this.#options.client, server }, ...others];
    const epoch = { ...(await this.#lookUpEpoch(joined, places)), server };
    for (const step of TAKE_OVER_STEPS) {
      joined.signal?.throwIfAborted();
      const { everywhere } = this.#options;
      if (step === 'end-older-statements' && everywhere) {
        const meant = { prefix: this.#groupPrefix, except: this.#epochPrefix(epoch) };
        await everywhere.end(meant, joined.signal);
        continue;
      }
      await Promise.all(
        places.map((place) => this.#take(step, { ...epoch, server: place.server }, joined, place.client)),
      );
      if (step === 'record-epoch') await this.#requireOneGeneration(epoch, joined, places);
    }
    return epoch;
  }

  async #take(step: TakeOverStep, epoch: OwnEpoch, joined: JoinedGeneration, client: ClickHouseClient): Promise<void> {
    await client.command({ query: STATEMENTS[step].sql, query_params: this.#parametersOf(step, epoch, joined) });
  }

  /** Returns the beginning of the query ids of everything that this writer does in the epoch. */
  queryIdPrefix(epoch: Epoch): string {
    return `${this.#epochPrefix(epoch)}${this.#options.writerId}`;
  }

  #epochPrefix({ incarnation, generation }: Epoch): string {
    return `${this.#groupPrefix}${incarnation}.${generation}/`;
  }

  /** @throws {Fenced} */
  async #lookUpEpoch(joined: JoinedGeneration, places: readonly Place[]): Promise<Epoch> {
    const { generation, memberId } = joined;
    const newest = await this.#readNewest(places);
    const isMember = isPassed(newest, joined) && (await this.#options.isMember(memberId, generation));
    const epoch = nextEpoch(newest, joined, isMember);
    if (!epoch) throw new Fenced(`generation ${generation} is no longer the newest`);
    return epoch;
  }

  /**
   * A member of another generation with the same number may have recorded the epoch at the same time. Each records it
   * before it reads, so at least one of the two finds the other here.
   *
   * @throws {Error} then; the next attempt begins another incarnation, or is fenced
   */
  async #requireOneGeneration(
    { incarnation, generation }: Epoch,
    joined: JoinedGeneration,
    places: readonly Place[],
  ): Promise<void> {
    const newest = await this.#readNewest(places);
    const isSame = newest?.incarnation === incarnation && newest.generation === generation;
    if (isSame && hasOtherLeader(newest, joined)) {
      throw new Error(`another generation ${generation} of the group has recorded the same epoch`);
    }
  }

  /** Returns the newest epoch that is recorded at any of the places. */
  async #readNewest(places: readonly Place[]): Promise<RecordedEpoch | undefined> {
    const found = await Promise.all(places.map((place) => this.#readNewestAt(place)));
    return newestOf(found.filter((epoch) => epoch !== undefined));
  }

  async #readNewestAt({ client, server }: Place): Promise<RecordedEpoch | undefined> {
    const { groupId } = this.#options;
    const result = await client.query({
      query: STATEMENTS['newest-epoch'].sql,
      query_params: { group: groupId, server },
      format: 'JSONEachRow',
    });
    return (await result.json<RecordedEpoch>())[0];
  }

  #parametersOf(step: TakeOverStep, epoch: OwnEpoch, { leaderId }: JoinedGeneration): Record<string, unknown> {
    switch (step) {
      case 'record-epoch':
        return { group: this.#options.groupId, leaderId, ...epoch };
      case 'end-older-statements':
        return { groupPrefix: this.#groupPrefix, epochPrefix: this.#epochPrefix(epoch), server: epoch.server };
    }
  }
}

/** throwIf() in the insert has found that this writer may not store it. */
const THROW_IF = new ErrorCodes('FUNCTION_THROW_IF_VALUE_IS_NON_ZERO');

/** Why an insert is refused by a replica that nobody has recorded yet. It may be repeated once that is done. */
export const NOT_RECORDED = 'the replica is not recorded yet';

/** Returns {@link Fenced} for the error with which ClickHouse refuses an insert of this writer, else the error itself. */
export function asFenced(error: unknown): unknown {
  if (!(error instanceof ClickHouseError && THROW_IF.has(error.code))) return error;
  if (error.message.includes(NOT_RECORDED)) return error;
  // ClickHouse adds where it happened to the message of throwIf().
  return new Fenced(error.message.split(': ')[0], { cause: error });
}

// Generation 0 is before every generation that writers join, so the next one goes on in this incarnation.
const RECORD_FENCE = `
INSERT INTO writer_epochs (group_id, incarnation, generation, leader_id)
SELECT {group:String}, greatest(toUnixTimestamp(now()), toUInt32(max(incarnation) + 1)), 0, ''
FROM writer_epochs WHERE group_id = {group:String}`;

/**
 * Records an epoch above all of the group's, also above those that were lost with a disk: its incarnation is the time in
 * seconds, and writers count theirs from 1. A writer that froze before stores nothing when it wakes up.
 *
 * @throws ClickHouse's errors
 */
export async function recordFence(client: ClickHouseClient, group: string): Promise<void> {
  await client.command({ query: RECORD_FENCE, query_params: { group } });
}
