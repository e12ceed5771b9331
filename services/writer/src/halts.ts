import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { Fault } from './offset-guard.ts';
import { nameOf } from './place.ts';
import { STATEMENTS } from './statements.ts';

/** A partition that is not stored until an operator resumes it. */
export interface Halt {
  readonly topic: string;
  readonly partition: number;
  readonly reason: Fault['reason'] | 'by hand';
  /** For the operator. */
  readonly detail: string;
  /** The first and the last offset at fault, where that can be told. */
  readonly firstOffset: bigint | null;
  readonly lastOffset: bigint | null;
}

/** The halts of a group of writers, in ClickHouse: they outlive every writer. All methods throw ClickHouse's errors. */
export interface Halts {
  /** Those that were not resumed, by the partitions' names. */
  active(): Promise<ReadonlyMap<string, Halt & { readonly haltedAt: string }>>;
  record(halt: Halt): Promise<void>;
  /** Resumes a partition, at the offset that the operator chose; without one it goes on where it was. */
  lift(topic: string, partition: number, offset?: bigint): Promise<void>;
}

interface HaltRow extends Pick<Halt, 'topic' | 'partition' | 'reason' | 'detail'> {
  readonly firstOffset: string | null;
  readonly lastOffset: string | null;
  readonly haltedAt: string;
}

export function createHalts(client: ClickHouseClient, groupId: string): Halts {
  const common = { group: groupId };

  return {
    async active() {
      const { sql } = STATEMENTS.readHalts;
      const result = await client.query({ query: sql, query_params: common, format: 'JSONEachRow' });
      const halts = (await result.json<HaltRow>()).map((row) => ({
        ...row,
        firstOffset: row.firstOffset === null ? null : BigInt(row.firstOffset),
        lastOffset: row.lastOffset === null ? null : BigInt(row.lastOffset),
      }));
      return new Map(halts.map((halt) => [nameOf(halt), halt]));
    },
    async record(halt) {
      await client.command({ query: STATEMENTS.recordHalt.sql, query_params: { ...common, ...halt } });
    },
    async lift(topic, partition, offset) {
      const place = { ...common, topic, partition };
      if (offset !== undefined) {
        await client.command({ query: STATEMENTS.choosePosition.sql, query_params: { ...place, offset } });
      }
      await client.command({ query: STATEMENTS.liftHalt.sql, query_params: { ...place, offset: offset ?? null } });
    },
  };
}
