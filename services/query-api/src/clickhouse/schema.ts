import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { isMigrated, migrate } from '@sluice/shared/clickhouse/migrate';
import type { ClickHouseConfig } from '@sluice/shared/config';
import type { Component } from '@sluice/shared/lifecycle';
import type { Logger } from '@sluice/shared/log';
import { retry } from '@sluice/shared/retry';

/**
 * Applies migrations in the background and retries until they succeed: the service that starts first creates the
 * tables. A ClickHouse user that may only read is enough once another service has created them.
 */
export function createSchemaComponent(client: ClickHouseClient, config: ClickHouseConfig, logger: Logger): Component {
  const stopped = new AbortController();
  let migrating: Promise<void> | undefined;

  async function migrateUntilDone(): Promise<void> {
    let logged = '';
    const createTables = async () => {
      // isMigrated fails while there is no database.
      if (!(await isMigrated(client).catch(() => false))) await migrate(config, logger);
    };
    const onFailure = (error: unknown) => {
      const { message } = error as Error;
      if (message !== logged) logger.warn({ reason: message }, 'cannot apply the migrations yet; retrying');
      logged = message;
    };
    await retry(createTables, { firstMs: 500, maxMs: 10_000, signal: stopped.signal, onFailure });
  }

  return {
    name: 'tables',
    async start() {
      migrating ??= migrateUntilDone();
    },
    async stop() {
      stopped.abort();
      // Stopping is the only way in which it fails.
      await migrating?.catch(() => undefined);
    },
  };
}
