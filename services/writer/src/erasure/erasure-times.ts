import { ALL_OTHERS, BEFORE_EVENTS_MS, keptFromMs } from '@sluice/shared/event-retention';
import type { RetentionSetting } from '../clickhouse/retention-settings.ts';

/** Before which time the events of each workspace are erased, in milliseconds. */
export interface ErasureTimes {
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
export function erasesAny({ workspaces, othersMs }: ErasureTimes): boolean {
  return [...workspaces.values(), othersMs].some((ms) => ms > BEFORE_EVENTS_MS);
}

/** Returns the workspaces with a time of their own, by their times, without those of which nothing is erased. */
export function byTime({ workspaces }: ErasureTimes): ReadonlyMap<number, readonly string[]> {
  const erased = [...workspaces].filter(([, ms]) => ms > BEFORE_EVENTS_MS);
  const groups = Map.groupBy(erased, ([, ms]) => ms);
  return new Map([...groups].map(([ms, some]) => [ms, some.map(([workspace]) => workspace)]));
}

function startOfMonth(ms: number): number {
  const date = new Date(ms);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth());
}
