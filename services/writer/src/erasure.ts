import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { Logger } from '@sluice/shared/log';
import { sleep } from '@sluice/shared/retry';
import type { WriterConfig } from './config.ts';
import { type DueErasure, eraseInHalves, passesOf } from './erasure-passes.ts';
import { openSession, type Session } from './session.ts';
import { STATEMENTS } from './statements.ts';

/** How many deletions are looked up at a time. */
const USERS_MAX = 200;

/** One pass may take this long, in milliseconds: it rewrites a mask in every part that holds such a user. */
export const ERASURE_TIMEOUT_MS = 600_000;

const ERASE_STATEMENTS = [
  STATEMENTS.eraseEvents,
  STATEMENTS.eraseProperties,
  STATEMENTS.eraseSightings,
  STATEMENTS.eraseEntities,
  STATEMENTS.eraseDeadLetters,
];

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
 *
 * Deletions take turns, oldest first: those that cannot be erased are tried again after all others.
 */
export function createErasure(
  config: Pick<WriterConfig, 'ERASURE_DELAY_MS' | 'ERASURE_INTERVAL_MS'>,
  client: ClickHouseClient,
  writerId: string,
  logger: Logger,
): Erasure {
  const stopping = new AbortController();
  let owner = false;
  /** The deletion that was tried last; undefined to begin with the oldest. */
  let position: DueErasure | undefined;
  let running: Promise<void> | undefined;

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await sleep(config.ERASURE_INTERVAL_MS, stopping.signal);
      if (!owner || stopping.signal.aborted) continue;
      try {
        await eraseAllDue();
      } catch (error) {
        logger.warn({ reason: (error as Error).message }, 'erasing deleted users failed; trying again');
      }
    }
  }

  /** Erases what is due, from where it ended the last time to the end. */
  async function eraseAllDue(): Promise<void> {
    let due: DueErasure[];
    do {
      due = await readDue(position);
      if (due.length === 0) position = undefined;
      let erased = 0;
      for (const pass of passesOf(due)) {
        position = pass.at(-1);
        erased += await eraseInHalves(pass, erase, warn);
      }
      if (erased > 0) logger.info({ users: erased }, 'erased deleted users');
    } while (due.length > 0 && owner && !stopping.signal.aborted);
  }

  async function readDue(after: DueErasure | undefined): Promise<DueErasure[]> {
    const session = newSession();
    const due = await session.read<DueErasure>(STATEMENTS.dueErasures, {
      delayMs: config.ERASURE_DELAY_MS,
      usersMax: USERS_MAX,
      afterMs: after?.stored_ms ?? 0,
      afterWorkspace: after?.workspace_id ?? '',
      afterUser: after?.user_id ?? '',
    });
    await session.close();
    return due;
  }

  async function erase(pass: readonly DueErasure[]): Promise<void> {
    const users = {
      workspaces: pass.map((deletion) => deletion.workspace_id),
      users: pass.map((deletion) => deletion.user_id),
      versions: pass.map((deletion) => deletion.deleted_version),
    };
    const session = newSession();
    for (const statement of ERASE_STATEMENTS) await session.run(statement, users);
    await session.run(STATEMENTS.markErased, users);
    await session.close();
  }

  function newSession(): Session {
    return openSession(client, `sluice-writer/${writerId}-erasure`, ERASURE_TIMEOUT_MS);
  }

  function warn(error: Error): void {
    logger.warn({ reason: error.message }, 'erasing a deleted user failed; trying again after the others');
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
