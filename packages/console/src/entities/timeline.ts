import type { Event } from '../base/base.ts';

/** A session ends after so many milliseconds without an event. */
const SESSION_GAP_MS = 30 * 60_000;

/** A run of events of one user without a long gap. */
export interface Session {
  readonly startMs: number;
  readonly endMs: number;
  readonly count: number;
  /** Whether earlier events may belong to it that are not loaded. */
  readonly isPartial: boolean;
}

/** What one session has on one day. */
export interface SessionPart {
  readonly session: Session;
  /** Whether the session began on an earlier day. */
  readonly isContinued: boolean;
  /** The newest first. */
  readonly events: readonly Event[];
}

/** A day of the time zone of the settings. */
export interface TimelineDay {
  /** When its newest event was. */
  readonly newestMs: number;
  readonly parts: readonly SessionPart[];
}

/**
 * Groups events by day, and those of a day by session.
 *
 * @param events the newest first, as `GET /events` returns them
 * @param dayOf returns a text that differs between days
 * @param hasMore whether there are older events
 */
export function timelineOf(
  events: readonly Event[],
  dayOf: (ms: number) => string,
  hasMore: boolean,
): readonly TimelineDay[] {
  const days: { day: string; newestMs: number; parts: SessionPart[] }[] = [];
  const sessions = sessionsOf(events);
  for (const [index, own] of sessions.entries()) {
    const [endMs, startMs] = [timeOf(own[0]), timeOf(own.at(-1))];
    const isPartial = hasMore && index === sessions.length - 1;
    const session: Session = { startMs, endMs, count: own.length, isPartial };
    for (const [day, ofDay] of Map.groupBy(own, (event) => dayOf(timeOf(event)))) {
      const part = { session, isContinued: day !== dayOf(startMs), events: ofDay };
      const last = days.at(-1);
      if (last?.day === day) last.parts.push(part);
      else days.push({ day, newestMs: timeOf(ofDay[0]), parts: [part] });
    }
  }
  return days;
}

function sessionsOf(events: readonly Event[]): readonly (readonly Event[])[] {
  const sessions: Event[][] = [];
  let laterMs = Number.POSITIVE_INFINITY;
  for (const event of events) {
    const ms = timeOf(event);
    if (laterMs - ms >= SESSION_GAP_MS) sessions.push([]);
    sessions.at(-1)?.push(event);
    laterMs = ms;
  }
  return sessions;
}

function timeOf(event: Event | undefined): number {
  return Date.parse(event?.timestamp ?? '');
}
