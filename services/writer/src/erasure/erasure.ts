import type { ClickHouseClient } from '@sluice/shared/clickhouse/client';
import type { Logger } from '@sluice/shared/log';
import { sleep } from '@sluice/shared/retry';
import type { WriterConfig } from '../config.ts';
import { STATEMENTS } from '../sql/statements.ts';
import { type ClickHouseSession, openClickHouseSession } from '../store/clickhouse-session.ts';
import { type DueErasure, eraseInHalves, passesOf } from './erasure-passes.ts';

/** How many due deletions one query returns. */
const USERS_MAX = 200;

/** How long one statement may take, in milliseconds: it rewrites a mask in every part that holds such a user. */
export const ERASURE_TIMEOUT_MS = 600_000;

const ERASE_STATEMENTS = [
  STATEMENTS['erase-events'],
  STATEMENTS['erase-properties'],
  STATEMENTS['erase-sightings'],
  STATEMENTS['erase-entities'],
  STATEMENTS['erase-dead-letters'],
];

export interface Erasure {
  start(): void;
  /** Only one writer of the group erases: the one that owns the first partition of the events. */
  setOwner(owner: boolean): void;
  stop(): Promise<void>;
}

/**
 * Erases the data of deleted users in the background. Queries hide it from the moment the deletion is stored.
 *
 * A deletion is due `ERASURE_DELAY_MS` after it was stored. This is longer than a statement may take
 * (`STATEMENT_TIMEOUT_MS`), so every insert that began before the deletion has ended by then, and every later insert
 * leaves out the rows of the user. No row of the user can therefore appear after the erasure. A pass that is interrupted
 * is repeated whole.
 *
 * Example: user u is deleted at 12:00:00. A batch with an event of u was sent at 11:59:59 and is still being inserted.
 * At 12:00:30 its insert has ended or was cancelled. At 12:01:00 the deletion is due, and the event is erased.
 *
 * The oldest deletions come first. A deletion that cannot be erased is retried after all others.
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
  let cursor: DueErasure | undefined;
  let running: Promise<void> | undefined;

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await sleep(config.ERASURE_INTERVAL_MS, stopping.signal);
      if (!owner || stopping.signal.aborted) continue;
      try {
        await eraseAllDue();
      } catch (error) {
        logger.warn({ reason: (error as Error).message }, 'erasing deleted users failed; retrying');
      }
    }
  }

  /** Erases all due deletions, and begins after the one that was tried last. */
  async function eraseAllDue(): Promise<void> {
    let due: DueErasure[];
    do {
      due = await readDue(cursor);
      if (due.length === 0) cursor = undefined;
      let erased = 0;
      for (const pass of passesOf(due)) {
        cursor = pass.at(-1);
        erased += await eraseInHalves(pass, erase, warn);
      }
      if (erased > 0) logger.info({ users: erased }, 'erased deleted users');
    } while (due.length > 0 && owner && !stopping.signal.aborted);
  }

  async function readDue(after: DueErasure | undefined): Promise<DueErasure[]> {
    const session = openSession();
    const due = await session.read<DueErasure>(STATEMENTS['find-due-erasures'], {
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
    const session = openSession();
    for (const statement of ERASE_STATEMENTS) await session.run(statement, users);
    await session.run(STATEMENTS['mark-erased'], users);
    await session.close();
  }

  function openSession(): ClickHouseSession {
    return openClickHouseSession(client, `sluice-writer/${writerId}-erasure`, ERASURE_TIMEOUT_MS);
  }

  function warn(error: Error): void {
    logger.warn({ reason: error.message }, 'erasing a deleted user failed; retrying after the others');
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
