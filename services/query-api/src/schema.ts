import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { isMigrated, migrate } from '@sluice/shared/clickhouse/migrate';
import type { ClickHouseConfig } from '@sluice/shared/config';
import type { Part } from '@sluice/shared/lifecycle';
import type { Logger } from '@sluice/shared/log';
import { backoff, sleep } from '@sluice/shared/sleep';

/**
 * Sees to the tables in the background, until they are there: whichever service starts first makes them. A user that may
 * only read is enough where another service has made them.
 */
export function createSchemaPart(client: ClickHouseClient, config: ClickHouseConfig, logger: Logger): Part {
  const stopped = new AbortController();
  let working: Promise<void> | undefined;

  async function untilMigrated(): Promise<void> {
    let told = '';
    for (const delayMs of backoff(500, 10_000)) {
      try {
        // Fails when the database is not there yet.
        if (await isMigrated(client).catch(() => false)) return;
        await migrate(config, logger);
        return;
      } catch (error) {
        const { message } = error as Error;
        if (message !== told) logger.warn({ reason: message }, 'the tables cannot be made yet; trying again');
        told = message;
      }
      await sleep(delayMs, stopped.signal);
      if (stopped.signal.aborted) return;
    }
  }

  return {
    name: 'tables',
    async start() {
      working ??= untilMigrated();
    },
    async stop() {
      stopped.abort();
      await working;
    },
  };
}
