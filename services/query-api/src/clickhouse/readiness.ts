import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { isMigrated, SchemaTooNew } from '@sluice/shared/clickhouse/migrate';
import { Probe } from '@sluice/shared/probe';

/** How long a probe may take, in milliseconds. */
const PROBE_TIMEOUT_MS = 2_000;

/**
 * Returns a probe of what query-api needs, as phrases for what is missing: ClickHouse has to respond and have the
 * tables.
 */
export function createReadiness(client: ClickHouseClient): () => Promise<string[]> {
  const probeServer = new Probe('ClickHouse cannot be reached', PROBE_TIMEOUT_MS, async () => {
    const { success } = await client.ping();
    if (!success) throw new Error('the ping failed');
  });
  const probeTables = new Probe('the tables do not exist yet', PROBE_TIMEOUT_MS, async () => {
    if (!(await isMigrated(client))) throw new Error('not all migrations are applied');
  });
  const probeVersion = new Probe('the tables are those of a newer version', PROBE_TIMEOUT_MS, async () => {
    await isMigrated(client).catch((error) => {
      if (error instanceof SchemaTooNew) throw error;
    });
  });
  return async () => {
    const missing = (await probeServer.check()) ?? (await probeVersion.check()) ?? (await probeTables.check());
    return missing === undefined ? [] : [missing];
  };
}
