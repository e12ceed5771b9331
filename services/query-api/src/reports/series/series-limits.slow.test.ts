import { eventually } from '@sluice/shared/testing/eventually';
import { expect, inject, onTestFinished, test } from 'vitest';
import type { ClickHouseReader } from '../../store/clickhouse-reader.ts';
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
import { type QueryService, startQuery } from '../../testing/query-service.ts';
import type { SeriesReport } from './series.ts';
import { EXACT_DISTINCT_MAX } from './series-query.ts';

// What a series does when its time, its memory or its slots are used up.

/** {@link storeMany} stores one event a second from here on. */
const START = 'startDate=2026-03-01';

async function started(
  env: Readonly<Record<string, string>>,
  wrapReader?: (reader: ClickHouseReader) => ClickHouseReader,
): Promise<QueryService> {
  const service = await startQuery(inject('clickhouseUrl'), env, wrapReader);
  onTestFinished(() => service.stop());
  return service;
}

async function series(service: QueryService, parameters: string): Promise<SeriesReport> {
  const { status, text } = await service.get(`/events/series?${parameters}`);
  expect([status, text]).toEqual([200, text]);
  return JSON.parse(text) as SeriesReport;
}

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
    const service = await started({}, (reader) => outOfTime(reader, (request) => isSlow(request) && isOutOfTime()));
    const minutes = 200;
    await storeMany(service, 'a', minutes * 60);
    const last = Date.UTC(2026, 2, 1) + (minutes - 1) * 60_000;
    const asked = `${START}&endDate=${new Date(last + 59_999).toISOString()}&interval=minute&${SLOW_FILTER}${groupBy}`;
    const report = await series(service, asked);
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
  const service = await started({}, outOfTime);
  await storeMany(service, 'a', 1_000);
  expect(await series(service, `${START}&interval=none&compare=previous&${SLOW_FILTER}`)).toMatchObject({
    ...{ buckets: [], series: [{ group: [], total: null, values: [] }], other: null, total: null, complete: false },
    previous: { buckets: [], series: [{ group: [], total: null, values: [] }], total: null },
  });
});

test('distinct counts that memory does not allow for are estimates, and exact up to a hundred thousand', async () => {
  const service = await started({ QUERY_MEMORY_BYTES_MAX: String(48 * 1_024 * 1_024), QUERY_THREADS_MAX: '2' });
  // ClickHouse's own estimate of the users of the last hour is 99,480: fewer than are counted exactly.
  const low = 100_010;
  const hours = [
    { first: 0, users: EXACT_DISTINCT_MAX },
    { first: EXACT_DISTINCT_MAX, users: 1_900_000 },
    { first: 69 * low, users: low },
  ];
  for (const [hour, { first, users }] of hours.entries())
    await service.clickHouse.command({
      query: `INSERT INTO events (workspace_id, timestamp, uuid, event, user_id, received_at)
        SELECT 'a', toDateTime64('2026-03-01', 3, 'UTC') + {hour:UInt8} * 3600, generateUUIDv4(number), 'e',
          toString(number), now64(6)
        FROM numbers({first:UInt64}, {users:UInt64})`,
      query_params: { hour, first, users },
    });
  const asked = `${START}&endDate=2026-03-01T02:59:59Z&interval=hour&measure=users`;
  for (const parameters of [asked, `${asked}&groupBy=event`]) {
    const report = await series(service, parameters);
    const [small = 0, large = 0, least = 0] = report.series[0]?.values ?? [];
    expect([report.exact, report.complete, small]).toEqual([false, true, EXACT_DISTINCT_MAX]);
    for (const [estimate, count] of [
      [large, 1_900_000],
      [least, low],
      [report.total, 2_000_000 + low],
    ] as const) {
      expect(Math.abs((estimate ?? 0) / count - 1)).toBeLessThan(0.01);
    }
    expect(least, 'an estimate is no number that would be exact').toBeGreaterThan(EXACT_DISTINCT_MAX);
  }
  const { exact, series: lines } = await series(service, `${asked}&userId[prefix]=12`);
  expect([exact, lines[0]?.values[1]]).toEqual([true, 110_000]);
});

test('a page does not wait for series that take all of their slots, and they end when their clients leave', async () => {
  const env = { QUERY_TIMEOUT_MS: '600000', QUERY_CONNECTIONS_MAX: '1', REPORT_CONNECTIONS_MAX: '1' };
  const service = await started(env, slowly);
  await service.app.listen({ host: '127.0.0.1', port: 0 });
  await storeMany(service, 'a', SLOW_EVENTS);
  const slow = `/events/series?${START}&interval=none&measure=users&${SLOW_FILTER}`;
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
