import { z } from 'zod';
import { integer } from './config.ts';

const DAY_MS = 86_400_000;

/** For how many days events are kept, given as text. */
export const retentionDays = integer(1, 36_500);

/** After how many days events move to the cold volume; `never`: what is there comes back. */
export const coldAfterDays = z.union([z.literal('never'), retentionDays], {
  error: 'must be a number of days from 1 to 36500, or never',
});

/** The workspace under which the retention of all those without one of their own is stored. */
export const ALL_OTHERS = '';

/** Before every event, in milliseconds since 1970: the earliest ones are of 1900. */
export const BEFORE_EVENTS_MS = Date.UTC(1899, 0);

/**
 * Returns the time from which on events are kept, in milliseconds: an event expires with its whole day of UTC, when the last
 * moment of that day is `days` days ago. So counts by hour and by day have no bucket of which only some events are kept.
 *
 * Example: with 1 day, the events of yesterday and today are kept.
 */
export function keptFromMs(days: number, nowMs: number): number {
  return (Math.floor(nowMs / DAY_MS) - days) * DAY_MS;
}
