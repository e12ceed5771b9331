import { COLD_POLICY, policyProblem, type Volume } from '@sluice/shared/clickhouse/cold-policy';
import { MoveRunning, requireNoRemovals } from '@sluice/storage/clickhouse/removals';
import type { TemporaryTables } from '@sluice/storage/clickhouse/temporary-tables';
import type { WriterConfig } from '../config.ts';
import { ERASURE_TIMEOUT_MS } from './erasure.ts';
import { Rounds, type RoundsDependencies } from './rounds.ts';
import { STATEMENTS } from './statements.ts';

export type ColdConfig = Pick<WriterConfig, 'ERASURE_INTERVAL_MS' | 'RETENTION_INTERVAL_MS' | 'EVENTS_COLD_AFTER_DAYS'>;

export interface ColdEventsDependencies extends RoundsDependencies {
  /** Puts the storage policy in force, with the account that may change tables. */
  readonly usePolicy: () => Promise<void>;
}

/** As `never`: no event is so old. */
const DAYS_OF_NEVER = 1_000_000;

/**
 * Moves months that are old to the cold volume, in the background, and back what is no longer old by the setting. Without the
 * setting nothing moves: what is on the cold volume stays there.
 *
 * Once in RETENTION_INTERVAL_MS it looks for parts of the table that lie on the wrong volume, and moves one after the other. A
 * part that is younger than that waits for the next look: late events are merged first, and are uploaded once.
 */
export class ColdEvents extends Rounds {
  readonly #config: ColdConfig;
  readonly #deps: ColdEventsDependencies;

  constructor(config: ColdConfig, deps: ColdEventsDependencies) {
    super(
      { intervalMs: config.ERASURE_INTERVAL_MS, restMs: config.RETENTION_INTERVAL_MS, what: 'moving old events' },
      deps,
    );
    this.#config = config;
    this.#deps = deps;
  }

  /** Moves all that is to be moved now. @throws {MoveRunning}, {RemovalRunning}, and ClickHouse's errors: the next round goes on */
  async takeRound(): Promise<void> {
    const { EVENTS_COLD_AFTER_DAYS: days, RETENTION_INTERVAL_MS: quietMs } = this.#config;
    if (days === undefined) return;
    const { client, writerId } = this.#deps;
    await this.useTables(client, `sluice-writer/${writerId}-cold`, ERASURE_TIMEOUT_MS, async (session) => {
      if (days !== 'never') await this.#requirePolicy(session);
      const misplaced = await session.read<Misplaced>(STATEMENTS['find-misplaced-parts'], {
        days: days === 'never' ? DAYS_OF_NEVER : days,
        quietMs,
      });
      for (const part of misplaced) await this.#move(session, part);
    });
  }

  /** @throws {Error} that says what the policy lacks */
  async #requirePolicy(session: TemporaryTables): Promise<void> {
    const volumes = await session.read<Volume & { readonly policy: string }>(STATEMENTS['read-events-policy']);
    const problem = policyProblem(volumes);
    if (problem !== undefined) throw new Error(`${problem}: see docs/operate/cold-storage.md`);
    if (volumes[0]?.policy === COLD_POLICY) return;
    await this.#deps.usePolicy();
    this.#deps.logger.info({ policy: COLD_POLICY }, 'the events have a storage policy with a cold volume');
  }

  async #move(session: TemporaryTables, { part, is_due: isDue }: Misplaced): Promise<void> {
    if (!this.mayGoOn) throw new Error('this writer no longer moves events');
    await requireNoRemovals(session);
    const [running] = await session.read<{ part: string; disk: string }>(STATEMENTS['find-moves']);
    if (running) throw new MoveRunning(`ClickHouse is still moving ${running.part} to the disk ${running.disk}`);
    await session.run(STATEMENTS[isDue ? 'move-to-cold-volume' : 'move-back'], { part });
    this.#deps.logger.info({ part }, isDue ? 'moved old events to the cold volume' : 'moved events back');
  }
}

interface Misplaced {
  readonly part: string;
  /** Whether it belongs on the cold volume. */
  readonly is_due: 0 | 1;
}
