import { expect, test } from 'vitest';
import type { Event } from '../base/base.ts';
import { timelineOf } from './timeline.ts';

/** Events at times of Berlin's summer, the newest first. */
function eventsAt(...times: readonly string[]): Event[] {
  return times.map((time) => ({ uuid: time, timestamp: new Date(`${time}+02:00`).toISOString() }) as Event);
}

const berlin = new Intl.DateTimeFormat('en', { dateStyle: 'short', timeZone: 'Europe/Berlin' });
const dayOf = (ms: number) => berlin.format(ms);

function shapeOf(events: readonly Event[], hasMore = false) {
  return timelineOf(events, dayOf, hasMore).map(({ newestMs, parts }) => ({
    day: dayOf(newestMs),
    parts: parts.map(({ session, isContinued, events }) => [session.count, isContinued, events.length]),
  }));
}

test('a gap of 30 minutes begins a session, a shorter one does not', () => {
  const events = eventsAt('2026-07-01T10:59:59.999', '2026-07-01T10:30:00', '2026-07-01T10:00:00');
  expect(shapeOf(events)).toEqual([
    {
      day: '7/1/26',
      parts: [
        [2, false, 2],
        [1, false, 1],
      ],
    },
  ]);
  const [day] = timelineOf(events, dayOf, false);
  expect(day?.parts.map(({ session }) => session.endMs - session.startMs)).toEqual([1_799_999, 0]);
});

test('a session over midnight is on both days, with all its events counted', () => {
  const events = eventsAt('2026-07-02T00:10:00', '2026-07-01T23:50:00', '2026-07-01T23:40:00');
  expect(shapeOf(events)).toEqual([
    { day: '7/2/26', parts: [[3, true, 1]] },
    { day: '7/1/26', parts: [[3, false, 2]] },
  ]);
});

test('only the oldest session may have events that are not loaded', () => {
  const events = eventsAt('2026-07-01T10:00:00', '2026-07-01T09:00:00');
  const partial = (hasMore: boolean) =>
    timelineOf(events, dayOf, hasMore).flatMap(({ parts }) => parts.map(({ session }) => session.isPartial));
  expect(partial(true)).toEqual([false, true]);
  expect(partial(false)).toEqual([false, false]);
});

test('days before 1970 are days, and no events are none', () => {
  const events = eventsAt('1969-12-31T10:00:00', '1950-01-01T10:00:00');
  expect(shapeOf(events).map(({ day }) => day)).toEqual(['12/31/69', '1/1/50']);
  expect(timelineOf([], dayOf, false)).toEqual([]);
});
