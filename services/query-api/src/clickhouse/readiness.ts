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
  const probeTables = new Probe(whyUnusable, PROBE_TIMEOUT_MS, async () => {
    if (!(await isMigrated(client))) throw new Error('not all migrations are applied');
  });
  return async () => {
    const missing = (await probeServer.check()) ?? (await probeTables.check());
    return missing === undefined ? [] : [missing];
  };
}

function whyUnusable(error: unknown): string {
  return error instanceof SchemaTooNew ? 'the tables are those of a newer version' : 'the tables do not exist yet';
}
