import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { STATEMENTS } from '../sql/statements.ts';
import type { LogFault } from './log-fault.ts';
import { nameOf, type TopicPartition } from './position.ts';

/** A partition that is not stored until an operator resumes it. */
export interface Halt extends TopicPartition {
  readonly reason: LogFault['reason'] | 'by hand';
  /** What happened, for the operator. */
  readonly detail: string;
  /** The first and the last offset at fault; null where they are not known. */
  readonly firstOffset: bigint | null;
  readonly lastOffset: bigint | null;
}

/** The halts of a group of writers. They are kept in ClickHouse, so a restart of a writer ends none. */
export interface Halts {
  /** Returns the halts that no operator has resumed, by the names of their partitions. @throws ClickHouse's errors */
  active(): Promise<ReadonlyMap<string, Halt & { readonly haltedAt: string }>>;
  /** @throws ClickHouse's errors */
  record(halt: Halt): Promise<void>;
  /**
   * Resumes a partition at the offset that the operator chose, or without one where it was.
   *
   * @throws ClickHouse's errors
   */
  resume(topic: string, partition: number, offset?: bigint): Promise<void>;
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
      const { sql } = STATEMENTS['read-halts'];
      const result = await client.query({ query: sql, query_params: common, format: 'JSONEachRow' });
      const halts = (await result.json<HaltRow>()).map((row) => ({
        ...row,
        firstOffset: row.firstOffset === null ? null : BigInt(row.firstOffset),
        lastOffset: row.lastOffset === null ? null : BigInt(row.lastOffset),
      }));
      return new Map(halts.map((halt) => [nameOf(halt), halt]));
    },
    async record(halt) {
      await client.command({ query: STATEMENTS['record-halt'].sql, query_params: { ...common, ...halt } });
    },
    async resume(topic, partition, offset) {
      const parameters = { ...common, topic, partition };
      if (offset !== undefined) {
        const { sql } = STATEMENTS['choose-position'];
        await client.command({ query: sql, query_params: { ...parameters, offset } });
      }
      const { sql } = STATEMENTS['resume-partition'];
      await client.command({ query: sql, query_params: { ...parameters, offset: offset ?? null } });
    },
  };
}
