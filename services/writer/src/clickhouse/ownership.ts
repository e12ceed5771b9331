import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import {
  type Epoch,
  hasOtherLeader,
  isPassed,
  type JoinedGeneration,
  nextEpoch,
  type RecordedEpoch,
} from '../protocol/epoch.ts';
import { Fenced } from '../protocol/fenced.ts';
import { TAKE_OVER_STEPS, type TakeOverStep } from '../protocol/steps.ts';
import { STATEMENTS } from './statements.ts';

/** Makes sure that a partition has one owner at a time, whose inserts ClickHouse accepts. */
export interface Ownership {
  /**
   * Becomes an owner of the partitions that were assigned in a generation. It records the epoch, from which moment on no
   * insert of an older epoch can begin, and ends the statements of older epochs that are running.
   *
   * @param joined its `signal` aborts when the assignment is over; nothing is recorded after that
   * @throws {Fenced} when a newer generation has begun meanwhile
   * @throws ClickHouse's and kafkajs's errors; the call may be repeated
   */
  begin(joined: JoinedGeneration & { readonly signal?: AbortSignal }): Promise<Epoch>;
  /** Returns the beginning of the query ids of everything that this writer does in the epoch. */
  queryIdPrefix(epoch: Epoch): string;
}

export interface OwnershipOptions {
  readonly client: ClickHouseClient;
  readonly groupId: string;
  /** Unique among all writers, past ones included. */
  readonly writerId: string;
  /** Whether Kafka counts this member to the group now, and it has not joined a later generation. */
  readonly isMember: (memberId: string, generation: number) => Promise<boolean>;
}

export function createOwnership({ client, groupId, writerId, isMember }: OwnershipOptions): Ownership {
  const groupPrefix = `sluice-writer/${encodeURIComponent(groupId)}/`;
  const epochPrefix = ({ incarnation, generation }: Epoch) => `${groupPrefix}${incarnation}.${generation}/`;

  async function readNewest(): Promise<RecordedEpoch | undefined> {
    const result = await client.query({
      query: STATEMENTS['newest-epoch'].sql,
      query_params: { group: groupId },
      format: 'JSONEachRow',
    });
    return (await result.json<RecordedEpoch>())[0];
  }

  /** @throws {Fenced} */
  async function lookUpEpoch(joined: JoinedGeneration): Promise<Epoch> {
    const { generation, memberId } = joined;
    const newest = await readNewest();
    const epoch = nextEpoch(newest, joined, isPassed(newest, joined) && (await isMember(memberId, generation)));
    if (!epoch) throw new Fenced(`generation ${generation} is no longer the newest`);
    return epoch;
  }

  /**
   * A member of another generation with the same number may have recorded the epoch at the same time. Each records it
   * before it reads, so at least one of the two finds the other here.
   *
   * @throws {Error} then; the next attempt begins another incarnation, or is fenced
   */
  async function requireOneGeneration({ incarnation, generation }: Epoch, joined: JoinedGeneration): Promise<void> {
    const newest = await readNewest();
    const isSame = newest?.incarnation === incarnation && newest.generation === generation;
    if (isSame && hasOtherLeader(newest, joined)) {
      throw new Error(`another generation ${generation} of the group has recorded the same epoch`);
    }
  }

  function parametersOf(step: TakeOverStep, epoch: Epoch, { leaderId }: JoinedGeneration): Record<string, unknown> {
    switch (step) {
      case 'record-epoch':
        return { group: groupId, leaderId, ...epoch };
      case 'end-older-statements':
        return { groupPrefix, epochPrefix: epochPrefix(epoch) };
    }
  }

  return {
    async begin(joined) {
      const epoch = await lookUpEpoch(joined);
      for (const step of TAKE_OVER_STEPS) {
        joined.signal?.throwIfAborted();
        await client.command({ query: STATEMENTS[step].sql, query_params: parametersOf(step, epoch, joined) });
        if (step === 'record-epoch') await requireOneGeneration(epoch, joined);
      }
      return epoch;
    },
    queryIdPrefix: (epoch) => `${epochPrefix(epoch)}${writerId}`,
  };
}
