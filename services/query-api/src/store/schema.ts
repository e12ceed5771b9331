import { connectionHint, withHint } from '@sluice/shared/base/connection-hints';
import type { Logger } from '@sluice/shared/base/log';
import { retry } from '@sluice/shared/base/retry';
import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import { ErrorCodes } from '@sluice/shared/clickhouse/error-codes';
import { isMigrated, migrate, SchemaTooNew } from '@sluice/shared/clickhouse/migrate';
import { requireUsableServer, UnusableServer } from '@sluice/shared/clickhouse/one-server';
import type { ClickHouseConfig } from '@sluice/shared/config';
import type { Component } from '@sluice/shared/service/lifecycle';
import { Probe } from '@sluice/shared/service/probe';

/** The account has not the rights for migrations, which is how it should be. */
const FORBIDDEN = new ErrorCodes('ACCESS_DENIED', 'READONLY');

/**
 * Applies migrations in the background and retries until they succeed: the service that starts first creates the
 * tables. A ClickHouse user that may only read is enough once another service has created them.
 */
export class SchemaComponent implements Component {
  readonly name = 'tables';
  readonly #client: ClickHouseClient;
  readonly #config: ClickHouseConfig;
  readonly #logger: Logger;
  readonly #stopped = new AbortController();
  #migrating: Promise<void> | undefined;

  constructor(client: ClickHouseClient, config: ClickHouseConfig, logger: Logger) {
    this.#client = client;
    this.#config = config;
    this.#logger = logger;
  }

  async start(): Promise<void> {
    this.#migrating ??= this.#migrateUntilDone();
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    // Stopping is the only way in which it fails.
    await this.#migrating?.catch(() => undefined);
  }

  async #migrateUntilDone(): Promise<void> {
    let logged = '';
    const createTables = async () => {
      await requireUsableServer(this.#config).catch(rejectUnusable);
      // isMigrated fails while there is no database.
      if (!(await isMigrated(this.#client).catch(() => false))) await migrate(this.#config, this.#logger);
    };
    const onFailure = (error: unknown) => {
      const { message: reason, code = '' } = error as Error & { readonly code?: string };
      if (reason !== logged && FORBIDDEN.has(code)) {
        this.#logger.info({ reason }, 'this account may not create the tables; waiting for the writer to do so');
      } else if (reason !== logged) {
        this.#logger.warn({ reason, hint: connectionHint(error) }, 'cannot apply the migrations yet; retrying');
      }
      logged = reason;
    };
    await retry(createTables, { firstMs: 500, maxMs: 10_000, signal: this.#stopped.signal, onFailure });
  }
}

/** Other errors, such as that there is no database yet, are those of the migrations. */
function rejectUnusable(error: unknown): void {
  if (error instanceof UnusableServer) throw error;
}

/** How long a probe may take, in milliseconds. */
const PROBE_TIMEOUT_MS = 2_000;

/**
 * Returns a probe of what query-api needs, as phrases for what is missing: ClickHouse has to respond and have the
 * tables.
 */
export function createReadiness(client: ClickHouseClient, config: ClickHouseConfig): () => Promise<string[]> {
  const ping = async () => {
    const result = await client.ping();
    if (!result.success) throw result.error;
  };
  let isUsable = false;
  const requireTables = async () => {
    if (!isUsable) await requireUsableServer(config);
    isUsable = true;
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
  if (error instanceof UnusableServer) return error.message;
  if (error instanceof SchemaTooNew) return 'the tables are those of a newer version';
  return withHint('the tables do not exist yet', connectionHint(error));
}
