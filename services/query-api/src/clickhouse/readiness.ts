import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { isMigrated } from '@sluice/shared/clickhouse/migrate';
import { connectionHint } from '@sluice/shared/connection-hints';
import { Probe } from '@sluice/shared/probe';

/** How long a probe may take, in milliseconds. */
const PROBE_TIMEOUT_MS = 2_000;

/**
 * Returns a probe of what query-api needs, as phrases for what is missing: ClickHouse has to respond and have the
 * tables.
 */
export function createReadiness(client: ClickHouseClient): () => Promise<string[]> {
  const ping = async () => {
    const result = await client.ping();
    if (!result.success) throw result.error;
  };
  const requireTables = async () => {
    if (!(await isMigrated(client))) throw new Error('not all migrations are applied');
  };
  const probeServer = new Probe('ClickHouse cannot be reached', PROBE_TIMEOUT_MS, ping, connectionHint);
  const probeTables = new Probe('the tables do not exist yet', PROBE_TIMEOUT_MS, requireTables, connectionHint);
  return async () => {
    const missing = (await probeServer.check()) ?? (await probeTables.check());
    return missing === undefined ? [] : [missing];
  };
}
