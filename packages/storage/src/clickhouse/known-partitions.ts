import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { Halt } from '../protocol/log-gap.ts';
import { nameOf, type Position, type TopicPartition } from '../protocol/position.ts';
import { asFenced } from './ownership.ts';
import { STATEMENTS } from './statements.ts';

/** How far a partition is stored. */
export interface StoredPosition extends TopicPartition, Position {}

/** A halt that no operator has resumed. */
export interface ActiveHalt extends Halt {
  readonly haltedAt: string;
}

/** What ClickHouse knows of the partitions of a group of writers, by the names of the partitions. */
export interface KnownPartitions {
  readonly positions: ReadonlyMap<string, StoredPosition>;
  readonly halts: ReadonlyMap<string, ActiveHalt>;
}

interface PositionColumns {
  readonly nextOffset: string;
  readonly fingerprint: string;
  readonly leaderEpoch: number;
}

interface HaltColumns extends Pick<Halt, 'reason' | 'detail'> {
  readonly firstOffset: string | null;
  readonly lastOffset: string | null;
  readonly haltedAt: string;
}

type Nullable<Columns> = { readonly [Name in keyof Columns]: null };

/** A position or a halt. */
type Row = TopicPartition & ((PositionColumns & Nullable<HaltColumns>) | (Nullable<PositionColumns> & HaltColumns));

/**
 * @param server the name of the ClickHouse server that has to answer; default: any
 * @throws {Fenced} when another one does
 * @throws ClickHouse's errors
 */
export async function readPartitions(client: ClickHouseClient, groupId: string, server = ''): Promise<KnownPartitions> {
  const query_params = { group: groupId, server };
  const query = { query: STATEMENTS['read-partitions'].sql, query_params, format: 'JSONEachRow' } as const;
  const result = await client.query(query).catch((error) => {
    throw asFenced(error);
  });
  const positions = new Map<string, StoredPosition>();
  const halts = new Map<string, ActiveHalt>();
  for (const row of await result.json<Row>()) {
    const { topic, partition } = row;
    const name = nameOf(row);
    if (row.nextOffset !== null) {
      const { nextOffset, fingerprint, leaderEpoch } = row;
      const last = fingerprint === '' ? undefined : { fingerprint, leaderEpoch };
      positions.set(name, { topic, partition, nextOffset: BigInt(nextOffset), last });
    } else {
      const { reason, detail, haltedAt } = row;
      const [firstOffset, lastOffset] = [offsetOf(row.firstOffset), offsetOf(row.lastOffset)];
      halts.set(name, { topic, partition, reason, detail, firstOffset, lastOffset, haltedAt });
    }
  }
  return { positions, halts };
}

function offsetOf(text: string | null): bigint | null {
  return text === null ? null : BigInt(text);
}
