import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { TAKE_OVER_STEPS, type TakeOverStep } from '../protocol.ts';
import { STATEMENTS } from '../sql/statements.ts';
import { type Epoch, nextEpoch } from './epoch.ts';
import { Fenced } from './fenced.ts';

/** Makes sure that a partition has one owner at a time, whose inserts ClickHouse accepts. */
export interface Ownership {
  /**
   * Becomes an owner of the partitions that were assigned in `generation`. It records the epoch, from which moment on no
   * insert of an older epoch can begin, and ends the statements of older epochs that are running.
   *
   * @throws {Fenced} when a newer generation has begun meanwhile
   * @throws ClickHouse's and kafkajs's errors; the call may be repeated
   */
  begin(generation: number, memberId: string): Promise<Epoch>;
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

  async function readNewest(): Promise<Epoch | undefined> {
    const result = await client.query({
      query: STATEMENTS['newest-epoch'].sql,
      query_params: { group: groupId },
      format: 'JSONEachRow',
    });
    return (await result.json<Epoch>())[0];
  }

  async function lookUpEpoch(generation: number, memberId: string): Promise<Epoch> {
    const newest = await readNewest();
    const late = newest !== undefined && generation < newest.generation;
    const next = nextEpoch(newest, generation, late && (await isMember(memberId, generation)));
    if (next.outcome === 'fenced') throw new Fenced(`generation ${generation} is no longer the newest`);
    return next.epoch;
  }

  function parametersOf(step: TakeOverStep, epoch: Epoch): Record<string, unknown> {
    switch (step) {
      case 'record-epoch':
        return { group: groupId, ...epoch };
      case 'end-older-statements':
        return { groupPrefix, epochPrefix: epochPrefix(epoch) };
    }
  }

  return {
    async begin(generation, memberId) {
      const epoch = await lookUpEpoch(generation, memberId);
      for (const step of TAKE_OVER_STEPS) {
        await client.command({ query: STATEMENTS[step].sql, query_params: parametersOf(step, epoch) });
      }
      return epoch;
    },
    queryIdPrefix: (epoch) => `${epochPrefix(epoch)}${writerId}`,
  };
}
