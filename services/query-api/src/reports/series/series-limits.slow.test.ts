import { expect, test } from 'vitest';
import { isSlow, outOfTime, SLOW_FILTER, storeMany } from '../../testing/load.ts';
import { readSeries, SERIES_START, startService } from '../../testing/series.ts';

// What a series does when its time is used up. At night also its memory and its slots.

test.each(['', '&groupBy=event'])(
  'a series that runs out of its time has the newest buckets, each complete, and no totals (%s)',
  async (groupBy) => {
    // Its queries are for the whole range, and then for one slice after the other.
    let queries = 0;
    const inTime = [2, 3];
    const isOutOfTime = () => {
      queries += 1;
      return !inTime.includes(queries);
    };
    const service = await startService({}, (reader) =>
      outOfTime(reader, (request) => isSlow(request) && isOutOfTime()),
    );
    const minutes = 200;
    await storeMany(service, 'a', minutes * 60);
    const last = Date.UTC(2026, 2, 1) + (minutes - 1) * 60_000;
    const asked = `${SERIES_START}&endDate=${new Date(last + 59_999).toISOString()}&interval=minute&${SLOW_FILTER}${groupBy}`;
    const report = await readSeries(service, asked);
    const { buckets } = report;
    expect(buckets.length).toBeGreaterThan(0);
    expect(buckets.length).toBeLessThan(minutes);
    expect(queries).toBe(4);
    const newest = buckets.map((_, index) => new Date(last - (buckets.length - 1 - index) * 60_000).toISOString());
    expect(report).toMatchObject({
      startDate: '2026-03-01T00:00:00.000Z',
      buckets: newest,
      series: [{ group: groupBy === '' ? [] : ['e'], total: null, values: newest.map(() => 60) }],
      ...{ other: null, total: null, complete: false, exact: true },
    });
  },
);
