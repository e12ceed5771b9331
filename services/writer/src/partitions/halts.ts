import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { STATEMENTS } from '../sql/statements.ts';
import type { LogFault } from './log-fault.ts';
import type { TopicPartition } from './position.ts';

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
  /** @throws ClickHouse's errors */
  record(halt: Halt): Promise<void>;
  /**
   * Resumes a partition at the offset that the operator chose, or without one where it was.
   *
   * @throws ClickHouse's errors
   */
  resume(topic: string, partition: number, offset?: bigint): Promise<void>;
}

export function createHalts(client: ClickHouseClient, groupId: string): Halts {
  const common = { group: groupId };

  return {
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
