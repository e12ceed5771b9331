import { connectionHint, withHint } from '@sluice/shared/base/connection-hints';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { isMigrated, SchemaTooNew } from '@sluice/shared/clickhouse/migrate';
import { Probe } from '@sluice/shared/service/probe';

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
  const probeServer = new Probe(whyUnreachable, PROBE_TIMEOUT_MS, ping);
  const probeTables = new Probe(whyUnusable, PROBE_TIMEOUT_MS, requireTables);
  return async () => {
    const missing = (await probeServer.check()) ?? (await probeTables.check());
    return missing === undefined ? [] : [missing];
  };
}

function whyUnreachable(error: unknown): string {
  return withHint('ClickHouse cannot be reached', connectionHint(error));
}

function whyUnusable(error: unknown): string {
  if (error instanceof SchemaTooNew) return 'the tables are those of a newer version';
  return withHint('the tables do not exist yet', connectionHint(error));
}
