import { randomUUID } from 'node:crypto';
import { ClickHouseError, type ClickHouseSettings } from '@clickhouse/client';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { Epoch } from './epoch.ts';
import { type Ownership, Superseded } from './ownership.ts';
import { nameOf, type Place } from './place.ts';
import { STATEMENTS } from './statements.ts';

/** FUNCTION_THROW_IF_VALUE_IS_NON_ZERO: the insert found a newer epoch. */
const THROWN_IF = '395';

/** Up to where a partition is stored. */
export interface Position extends Place {
  readonly topic: string;
  readonly partition: number;
}

/** Up to where the partitions are stored, in ClickHouse itself, so that a copy of it knows its own positions. */
export interface Positions {
  /** By the partitions' names. @throws ClickHouse's errors */
  read(): Promise<ReadonlyMap<string, Position>>;
  /**
   * @throws {Superseded} when a newer epoch has begun
   * @throws ClickHouse's errors; then it can be called again
   */
  store(positions: readonly Position[], epoch: Epoch): Promise<void>;
}

export interface PositionsOptions {
  readonly client: ClickHouseClient;
  readonly ownership: Pick<Ownership, 'queryIdPrefix'>;
  readonly groupId: string;
  readonly statementTimeoutMs: number;
}

export function createPositions({ client, ownership, groupId, statementTimeoutMs }: PositionsOptions): Positions {
  return {
    read: () => readPositions(client, groupId),
    async store(positions, epoch) {
      const { name, sql } = STATEMENTS.storePositions;
      // A parameter of the HTTP interface travels where settings do.
      const settings = { wait_end_of_query: 1, max_execution_time: statementTimeoutMs / 1_000 };
      await client
        .command({
          query: sql,
          query_id: `${ownership.queryIdPrefix(epoch)}/${name}/${randomUUID()}`,
          query_params: {
            group: groupId,
            ...epoch,
            topics: positions.map(({ topic }) => topic),
            partitions: positions.map(({ partition }) => partition),
            offsets: positions.map(({ nextOffset }) => nextOffset),
            fingerprints: positions.map(({ last }) => last?.fingerprint ?? ''),
            leaderEpochs: positions.map(({ last }) => last?.leaderEpoch ?? -1),
          },
          clickhouse_settings: settings as unknown as ClickHouseSettings,
        })
        .catch((error) => {
          if (!(error instanceof ClickHouseError && error.code === THROWN_IF)) throw error;
          throw new Superseded('a newer generation of writers has begun', { cause: error });
        });
    },
  };
}

/** As {@link Positions.read}. */
export async function readPositions(client: ClickHouseClient, groupId: string): Promise<ReadonlyMap<string, Position>> {
  const result = await client.query({
    query: STATEMENTS.readPositions.sql,
    query_params: { group: groupId },
    format: 'JSONEachRow',
  });
  const rows = await result.json<{
    topic: string;
    partition: number;
    nextOffset: string;
    fingerprint: string;
    leaderEpoch: number;
  }>();
  return new Map(
    rows.map(({ topic, partition, nextOffset, fingerprint, leaderEpoch }) => {
      const last = fingerprint === '' ? undefined : { fingerprint, leaderEpoch };
      return [nameOf({ topic, partition }), { topic, partition, nextOffset: BigInt(nextOffset), last }];
    }),
  );
}
