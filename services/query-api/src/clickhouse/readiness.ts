import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { isMigrated } from '@sluice/shared/clickhouse/migrate';
import { createProbe } from '@sluice/shared/probe';

/** How long ClickHouse may take to answer a health check, in milliseconds. */
const PROBE_TIMEOUT_MS = 2_000;

/** What keeps query-api from answering: ClickHouse has to answer, and to have the tables. */
export function createReadiness(client: ClickHouseClient): () => Promise<string[]> {
  const reached = createProbe('ClickHouse cannot be reached', PROBE_TIMEOUT_MS, async () => {
    const { success } = await client.ping();
    if (!success) throw new Error('no answer');
  });
  const tables = createProbe('the tables are not there yet', PROBE_TIMEOUT_MS, async () => {
    if (!(await isMigrated(client))) throw new Error('not migrated');
  });
  return async () => {
    const missing = (await reached()) ?? (await tables());
    return missing === undefined ? [] : [missing];
  };
}
