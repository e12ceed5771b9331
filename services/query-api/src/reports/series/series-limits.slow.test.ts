import { eventually } from '@sluice/shared/testing/eventually';
import { expect, test } from 'vitest';
import {
  isSlow,
  metric,
  openRequest,
  outOfTime,
  queriesRunning,
  SLOW_EVENTS,
  SLOW_FILTER,
  slowly,
  storeMany,
} from '../../testing/load.ts';
import { readSeries, SERIES_START, startService } from '../../testing/series.ts';

// What a series does when its time or its slots are used up. At night also its memory.

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

test('a series without any bucket in time says so', async () => {
  const service = await startService({}, outOfTime);
  await storeMany(service, 'a', 1_000);
  expect(await readSeries(service, `${SERIES_START}&interval=none&compare=previous&${SLOW_FILTER}`)).toMatchObject({
    ...{ buckets: [], series: [{ group: [], total: null, values: [] }], other: null, total: null, complete: false },
    previous: { buckets: [], series: [{ group: [], total: null, values: [] }], total: null },
  });
});

test('a page does not wait for series that take all of their slots, and they end when their clients leave', async () => {
  const env = { QUERY_TIMEOUT_MS: '600000', QUERY_CONNECTIONS_MAX: '1', REPORT_CONNECTIONS_MAX: '1' };
  const service = await startService(env, slowly);
  await service.app.listen({ host: '127.0.0.1', port: 0 });
  await storeMany(service, 'a', SLOW_EVENTS);
  const slow = `/events/series?${SERIES_START}&interval=none&measure=users&${SLOW_FILTER}`;
  const requests = [openRequest(service, slow), openRequest(service, slow)];
  try {
    const states = async () => [
      await metric(service, 'sluice_queries{pool="reports",state="running"}'),
      await metric(service, 'sluice_queries{pool="reports",state="waiting"}'),
    ];
    await eventually(states).toEqual([1, 1]);
    const { status, body } = await service.get('/events?limit=10&total=none');
    expect([status, body.results.length]).toEqual([200, 10]);
    expect(await states()).toEqual([1, 1]);
  } finally {
    for (const request of requests) request.destroy();
  }
  await eventually(() => queriesRunning(service)).toBe(0);
});
