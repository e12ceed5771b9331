import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { type Epoch, nextEpoch } from './epoch.ts';
import { TAKE_OVER_STEPS, type TakeOverStep } from './protocol.ts';
import { STATEMENTS } from './statements.ts';

/** Other writers own the partitions now: nothing may be stored on behalf of this assignment any more. */
export class Superseded extends Error {
  override readonly name = 'Superseded';
  /** By this kafkajs knows that it has to join the group anew, at once; it would fetch the old assignment again. */
  readonly type = 'REBALANCE_IN_PROGRESS';
}

export interface Ownership {
  /**
   * Becomes an owner of the partitions that were assigned in `generation`: records its epoch, from which moment on no
   * insert of an older one can begin, and ends those that had begun.
   *
   * @throws {Superseded} when a newer generation has begun meanwhile
   * @throws ClickHouse's and kafkajs's errors; then it can be called again
   */
  begin(generation: number, memberId: string): Promise<Epoch>;
  /** Begins the query ids of what this writer does in the epoch. */
  queryIdPrefix(epoch: Epoch): string;
}

export interface OwnershipOptions {
  readonly client: ClickHouseClient;
  readonly groupId: string;
  /** Tells this writer from all others, past ones included. */
  readonly writerId: string;
  /** Whether Kafka has this member in the group now, and it has not joined a later generation. */
  readonly isMember: (memberId: string, generation: number) => Promise<boolean>;
}

/** Sees to it that each partition has one owner at a time, as ClickHouse sees it. */
export function createOwnership({ client, groupId, writerId, isMember }: OwnershipOptions): Ownership {
  const groupPrefix = `sluice-writer/${encodeURIComponent(groupId)}/`;
  const epochPrefix = ({ incarnation, generation }: Epoch) => `${groupPrefix}${incarnation}.${generation}/`;

  async function readNewest(): Promise<Epoch | undefined> {
    const result = await client.query({
      query: STATEMENTS.newestFence.sql,
      query_params: { group: groupId },
      format: 'JSONEachRow',
    });
    return (await result.json<Epoch>())[0];
  }

  async function lookUpEpoch(generation: number, memberId: string): Promise<Epoch> {
    const newest = await readNewest();
    const late = newest !== undefined && generation < newest.generation;
    const next = nextEpoch(newest, generation, late && (await isMember(memberId, generation)));
    if (next.outcome === 'superseded') throw new Superseded(`generation ${generation} is no longer the newest`);
    return next.epoch;
  }

  async function perform(step: TakeOverStep, epoch: Epoch): Promise<void> {
    switch (step) {
      case 'record epoch':
        await client.command({ query: STATEMENTS.recordFence.sql, query_params: { group: groupId, ...epoch } });
        return;
      case 'end older statements': {
        const query_params = { groupPrefix, epochPrefix: epochPrefix(epoch) };
        await client.command({ query: STATEMENTS.killOlder.sql, query_params });
        return;
      }
    }
  }

  return {
    async begin(generation, memberId) {
      const epoch = await lookUpEpoch(generation, memberId);
      for (const step of TAKE_OVER_STEPS) await perform(step, epoch);
      return epoch;
    },
    queryIdPrefix: (epoch) => `${epochPrefix(epoch)}${writerId}`,
  };
}
