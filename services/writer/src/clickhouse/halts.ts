import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { Epoch } from '../protocol/epoch.ts';
import type { Halt } from '../protocol/log-fault.ts';
import { fencedOr } from './fenced-or.ts';
import { STATEMENTS } from './statements.ts';

/** The halts of a group of writers. They are kept in ClickHouse, so a restart of a writer ends none. */
export interface Halts {
  /**
   * @param epoch in which a writer has decided on the halt; without one, an operator has
   * @throws {Fenced} when a newer epoch is recorded: its owners have inspected the partition since then
   * @throws ClickHouse's errors
   */
  record(halt: Halt, epoch?: Epoch): Promise<void>;
  /**
   * Resumes a partition at the offset that the operator chose, or without one where it was.
   *
   * @throws ClickHouse's errors
   */
  resume(topic: string, partition: number, offset?: bigint): Promise<void>;
}

/** Older than every epoch of a writer. */
const NO_EPOCH: Epoch = { incarnation: 0, generation: 0 };

export function createHalts(client: ClickHouseClient, groupId: string): Halts {
  const common = { group: groupId };

  return {
    async record(halt, epoch = NO_EPOCH) {
      const { sql } = STATEMENTS['record-halt'];
      await client.command({ query: sql, query_params: { ...common, ...halt, ...epoch } }).catch((error) => {
        throw fencedOr(error);
      });
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
