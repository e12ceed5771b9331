import { randomUUID } from 'node:crypto';
import type { ClickHouseSettings } from '@clickhouse/client';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { OwnEpoch } from '../protocol/epoch.ts';
import type { StoredPosition } from './known-partitions.ts';
import type { Ownership } from './ownership.ts';
import { asFenced } from './ownership.ts';
import { STATEMENTS } from './statements.ts';

/** A position to be stored. */
export interface NewPosition extends StoredPosition {
  /** Where the partition went on: everything before this offset is stored already. */
  readonly from: bigint;
}

export interface PositionsOptions {
  readonly client: ClickHouseClient;
  readonly ownership: Pick<Ownership, 'queryIdPrefix'>;
  readonly groupId: string;
  readonly statementTimeoutMs: number;
}

/**
 * How far each partition is stored, kept in ClickHouse next to the rows. A ClickHouse that was restored from a backup
 * thus knows the positions of that backup.
 */
export class Positions {
  readonly #options: PositionsOptions;

  constructor(options: PositionsOptions) {
    this.#options = options;
  }

  /**
   * @throws {Fenced} when a newer epoch is recorded, another server answers, or ClickHouse does not have what is before `from` any more
   * @throws ClickHouse's errors; the call may be repeated
   */
  async store(positions: readonly NewPosition[], epoch: OwnEpoch): Promise<void> {
    const { client, ownership, groupId, statementTimeoutMs } = this.#options;
    const { name, sql } = STATEMENTS['store-positions'];
    // The client's types do not know wait_end_of_query: it is a parameter of the HTTP interface, sent like a setting.
    const settings = { wait_end_of_query: 1, max_execution_time: statementTimeoutMs / 1_000, max_threads: 1 };
    await client
      .command({
        query: sql,
        query_id: `${ownership.queryIdPrefix(epoch)}/${name}/${randomUUID()}`,
        query_params: {
          group: groupId,
          ...epoch,
          topics: positions.map(({ topic }) => topic),
          partitions: positions.map(({ partition }) => partition),
          from: positions.map(({ from }) => from),
          offsets: positions.map(({ nextOffset }) => nextOffset),
          fingerprints: positions.map(({ last }) => last?.fingerprint ?? ''),
          leaderEpochs: positions.map(({ last }) => last?.leaderEpoch ?? -1),
        },
        clickhouse_settings: settings as unknown as ClickHouseSettings,
      })
      .catch((error) => {
        throw asFenced(error);
      });
  }
}
