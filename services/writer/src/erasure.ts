import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { Logger } from '@sluice/shared/log';
import { sleep } from '@sluice/shared/sleep';
import type { WriterConfig } from './config.ts';
import { openSession } from './session.ts';
import { STATEMENTS } from './statements.ts';

/** How many users one pass erases. */
const USERS_MAX = 200;

/** One pass may take this long, in milliseconds: it rewrites a mask in every part that holds such a user. */
export const ERASURE_TIMEOUT_MS = 600_000;

interface DueErasure {
  readonly workspace_id: string;
  readonly user_id: string;
  readonly deleted_version: number;
}

export interface Erasure {
  start(): void;
  /** One writer of the group erases: the one that owns the first partition. */
  setOwner(owner: boolean): void;
  stop(): Promise<void>;
}

/**
 * Erases in the background what belongs to deleted users; reading hides it from the moment the deletion is stored.
 *
 * A deletion is due `ERASURE_DELAY_MS` after it was stored. Every insert that began before that has ended by then (a
 * statement may take `STATEMENT_TIMEOUT_MS`), and every later one leaves out what the deletion covers: so nothing
 * comes back once a deletion is marked as erased. A pass that is cut off is simply done again.
 */
export function createErasure(
  config: WriterConfig,
  client: ClickHouseClient,
  writerId: string,
  logger: Logger,
): Erasure {
  const stopping = new AbortController();
  let owner = false;
  let running: Promise<void> | undefined;

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await sleep(config.ERASURE_INTERVAL_MS, stopping.signal);
      if (!owner || stopping.signal.aborted) continue;
      try {
        await erase();
      } catch (error) {
        logger.warn({ reason: (error as Error).message }, 'erasing deleted users failed; trying again');
      }
    }
  }

  async function erase(): Promise<void> {
    const session = openSession(client, `sluice-writer/${writerId}-erasure`, ERASURE_TIMEOUT_MS);
    const due = await session.read<DueErasure>(STATEMENTS.dueErasures, {
      delayMs: config.ERASURE_DELAY_MS,
      usersMax: USERS_MAX,
    });
    if (due.length > 0) {
      const erased = {
        workspaces: due.map((deletion) => deletion.workspace_id),
        users: due.map((deletion) => deletion.user_id),
        versions: due.map((deletion) => deletion.deleted_version),
      };
      await session.run(STATEMENTS.eraseEvents, erased);
      await session.run(STATEMENTS.eraseProperties, erased);
      await session.run(STATEMENTS.eraseSightings, erased);
      await session.run(STATEMENTS.markErased, erased);
      logger.info({ users: due.length }, 'erased deleted users');
    }
    await session.close();
  }

  return {
    start() {
      running ??= run();
    },
    setOwner(value) {
      owner = value;
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
