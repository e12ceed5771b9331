import { ALL_OTHERS, BEFORE_EVENTS_MS, keptFromMs } from '@sluice/shared/config/retention-days';
import { requireNoRemovals } from '@sluice/storage/clickhouse/removals';
import { type RetentionSetting, readRetention } from '@sluice/storage/clickhouse/retention-settings';
import type { TemporaryTables } from '@sluice/storage/clickhouse/temporary-tables';
import type { WriterConfig } from '../config.ts';
import { ERASURE_TIMEOUT_MS } from './erasure.ts';
import { Rounds, type RoundsDependencies } from './rounds.ts';
import { STATEMENTS } from './statements.ts';

export type ExpiryConfig = Pick<
  WriterConfig,
  'ERASURE_INTERVAL_MS' | 'RETENTION_INTERVAL_MS' | 'RETENTION_DELAY_MS' | 'EVENTS_RETENTION_DAYS'
>;

/**
 * By how much the clocks of ClickHouse and of this writer may differ, in milliseconds. A clock that is years ahead would make
 * everything expire.
 */
const CLOCK_DIFFERENCE_MS_MAX = 600_000;

/**
 * Erases expired events in the background. Queries leave them out from the moment they expire.
 *
 * Once in RETENTION_INTERVAL_MS it looks for partitions of the table with events to be erased, and rewrites these, one after
 * the other. That goes by whole months: see {@link erasureTimes}. Where no event is left, ClickHouse reads the time and the
 * workspace of each, and writes nothing: a million take a tenth of a second. DROP PARTITION would also remove what is
 * inserted meanwhile.
 *
 * Example: events are kept for 30 days. On the 3rd of March those of the 31st of January expire, the last of their month.
 * A day later, those of January are erased.
 */
export class ExpiredEvents extends Rounds {
  readonly #config: ExpiryConfig;
  readonly #deps: RoundsDependencies;

  constructor(config: ExpiryConfig, deps: RoundsDependencies) {
    super(
      { intervalMs: config.ERASURE_INTERVAL_MS, restMs: config.RETENTION_INTERVAL_MS, what: 'erasing expired events' },
      deps,
    );
    this.#config = config;
    this.#deps = deps;
  }

  /** Erases all that is to be erased now. @throws {RemovalRunning}, and ClickHouse's errors: the next round goes on */
  async takeRound(): Promise<void> {
    const times = await this.#times();
    if (!erasesAny(times)) return;
    const queryIdPrefix = `sluice-writer/${this.#deps.writerId}-expiry`;
    await this.useTables(this.#deps.client, queryIdPrefix, ERASURE_TIMEOUT_MS, async (session) => {
      for (const partition of await findPartitions(session, times)) await this.#eraseFrom(session, partition);
    });
  }

  /**
   * The settings may have changed since the last statement, which can take minutes.
   *
   * @throws when a clock may be wrong: what is erased is gone
   */
  async #times(): Promise<ErasureTimes> {
    const settings = await readRetention(this.#deps.client);
    const { EVENTS_RETENTION_DAYS: own = 0, RETENTION_DELAY_MS } = this.#config;
    const differenceMs = (settings[0]?.nowMs ?? Date.now()) - Date.now();
    if (Math.abs(differenceMs) > CLOCK_DIFFERENCE_MS_MAX) {
      const seconds = Math.round(differenceMs / 1_000);
      throw new Error(`the clock of ClickHouse is ${seconds} s ahead of that of this writer: correct the wrong one`);
    }
    const recorded = settings.find(({ workspace }) => workspace === ALL_OTHERS)?.days ?? 0;
    if (recorded === own) return erasureTimes(settings, RETENTION_DELAY_MS);
    this.#deps.logger.warn(
      { own, recorded },
      'another writer has another EVENTS_RETENTION_DAYS (0: for ever): it erases nothing',
    );
    return erasureTimes(
      settings.filter(({ workspace }) => workspace !== ALL_OTHERS),
      RETENTION_DELAY_MS,
    );
  }

  async #eraseFrom(session: TemporaryTables, partition: string): Promise<void> {
    if (!this.mayGoOn) throw new Error('this writer no longer erases');
    await requireNoRemovals(session);
    const { workspaces, othersMs } = await this.#times();
    await session.run(STATEMENTS['erase-expired-events'], {
      partition,
      workspaces: [...workspaces.keys()],
      beforeMs: [...workspaces.values()],
      othersBeforeMs: othersMs,
    });
    this.#deps.logger.info({ partition }, 'erased expired events');
  }
}

/** Returns the partitions with events to be erased, in their order. */
async function findPartitions(session: TemporaryTables, times: ErasureTimes): Promise<readonly string[]> {
  const found = new Set<string>();
  const find = async (statement: 'find-expired-events' | 'find-expired-events-of-others', parameters: object) => {
    const rows = await session.read<{ partition: string }>(STATEMENTS[statement], { ...parameters });
    for (const { partition } of rows) found.add(partition);
  };
  for (const [beforeMs, workspaces] of byTime(times)) await find('find-expired-events', { workspaces, beforeMs });
  const workspaces = [...times.workspaces.keys()];
  await find('find-expired-events-of-others', { workspaces, beforeMs: times.othersMs });
  return [...found].sort();
}

/** Before which time the events of each workspace are erased, in milliseconds. */
interface ErasureTimes {
  /** The workspaces with a time of their own. */
  readonly workspaces: ReadonlyMap<string, number>;
  /** That of all others. */
  readonly othersMs: number;
}

/**
 * Returns what is to be erased: events are removed by whole calendar months, `delayMs` after the whole month has expired.
 * So a partition is rewritten once a month, and an operator who has set too few days has `delayMs` to set more.
 */
export function erasureTimes(settings: readonly RetentionSetting[], delayMs: number): ErasureTimes {
  const timeOf = ({ days, ageMs, nowMs }: RetentionSetting) =>
    days === 0 || ageMs < delayMs ? BEFORE_EVENTS_MS : startOfMonth(keptFromMs(days, nowMs - delayMs));
  const others = settings.find(({ workspace }) => workspace === ALL_OTHERS);
  const own = settings.filter(
    ({ workspace, days, ageMs }) => workspace !== ALL_OTHERS && (days > 0 || ageMs < delayMs),
  );
  return {
    workspaces: new Map(own.map((setting) => [setting.workspace, timeOf(setting)])),
    othersMs: others ? timeOf(others) : BEFORE_EVENTS_MS,
  };
}

/** Whether the events of some workspace are erased. */
function erasesAny({ workspaces, othersMs }: ErasureTimes): boolean {
  return [...workspaces.values(), othersMs].some((ms) => ms > BEFORE_EVENTS_MS);
}

/** Returns the workspaces with a time of their own, by their times, without those of which nothing is erased. */
function byTime({ workspaces }: ErasureTimes): ReadonlyMap<number, readonly string[]> {
  const erased = [...workspaces].filter(([, ms]) => ms > BEFORE_EVENTS_MS);
  const groups = Map.groupBy(erased, ([, ms]) => ms);
  return new Map([...groups].map(([ms, some]) => [ms, some.map(([workspace]) => workspace)]));
}

function startOfMonth(ms: number): number {
  const date = new Date(ms);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
}
