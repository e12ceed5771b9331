import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { isMigrated, migrate } from '@sluice/shared/clickhouse/migrate';
import type { ClickHouseConfig } from '@sluice/shared/config';
import type { Component } from '@sluice/shared/lifecycle';
import type { Logger } from '@sluice/shared/log';
import { retry } from '@sluice/shared/retry';

/**
 * Sees to the tables in the background, until they are there: whichever service starts first makes them. A user that may
 * only read is enough where another service has made them.
 */
export function createSchemaComponent(client: ClickHouseClient, config: ClickHouseConfig, logger: Logger): Component {
  const stopped = new AbortController();
  let working: Promise<void> | undefined;

  async function untilMigrated(): Promise<void> {
    let told = '';
    const make = async () => {
      // Fails when the database is not there yet.
      if (!(await isMigrated(client).catch(() => false))) await migrate(config, logger);
    };
    const onFailure = (error: unknown) => {
      const { message } = error as Error;
      if (message !== told) logger.warn({ reason: message }, 'the tables cannot be made yet; trying again');
      told = message;
    };
    await retry(make, { firstMs: 500, maxMs: 10_000, signal: stopped.signal, onFailure });
  }

  return {
    name: 'tables',
    async start() {
      working ??= untilMigrated();
    },
    async stop() {
      stopped.abort();
      // It fails by being stopped, and not otherwise.
      await working?.catch(() => undefined);
    },
  };
}
