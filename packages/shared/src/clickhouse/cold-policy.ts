import type { ClickHouseConfig } from '../config/config.ts';
import { createClickHouse } from './client.ts';
import { migrateAccount } from './migrate.ts';

/** The storage policy of the events, where old ones move to another volume. The operator gives ClickHouse one of this name. */
export const COLD_POLICY = 'sluice';

/** How the policy's volumes are named: that of new events, and that of old ones. */
const [HOT, COLD] = ['default', 'cold'];

/** A volume of the policy, as `system.storage_policies` has it. */
export interface Volume {
  readonly volume: string;
  readonly disks: readonly string[];
  /** ClickHouse moves parts to the next volume by itself when less than this part of the disk is free. */
  readonly move_factor: number;
}

/** Returns what is wrong with the volumes of the policy, in their order: none where ClickHouse does not know it. */
export function policyProblem(volumes: readonly Volume[]): string | undefined {
  if (volumes.length === 0) return `ClickHouse has no storage policy "${COLD_POLICY}"`;
  const names = volumes.map(({ volume }) => volume);
  if (names.length !== 2 || names[0] !== HOT || names[1] !== COLD)
    return `the storage policy "${COLD_POLICY}" has the volumes ${names.join(', ')}, and needs ${HOT} and ${COLD}`;
  if (volumes.some(({ move_factor }) => move_factor > 0))
    return `the storage policy "${COLD_POLICY}" has a move_factor, with which ClickHouse itself moves new events`;
  return undefined;
}

/**
 * The table keeps the policy for good: ClickHouse takes no other in its place, and without one its background work ends while a
 * part lies on the cold volume. Statistics of columns are read of every part before a query knows which parts it needs: on the
 * cold volume, each would be a request.
 */
const USE_POLICY = `ALTER TABLE events MODIFY SETTING storage_policy = '${COLD_POLICY}', auto_statistics_types = ''`;

/** Puts the policy in force for the events. It may be repeated. @throws ClickHouse's errors */
export async function useColdPolicy(config: ClickHouseConfig): Promise<void> {
  const client = createClickHouse(migrateAccount(config), {
    application: 'sluice-migrate',
    requestTimeoutMs: 60_000,
    connectionsMax: 1,
  });
  try {
    await client.command({ query: USE_POLICY });
  } finally {
    await client.close();
  }
}
