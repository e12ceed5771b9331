import { expect, test } from 'vitest';
import { readSeries, SERIES_START, startService } from '../../testing/series.ts';
import { EXACT_DISTINCT_MAX } from './series-query.ts';

test('distinct counts that memory does not allow for are estimates, and exact up to a hundred thousand', async () => {
  const service = await startService({ QUERY_MEMORY_BYTES_MAX: String(48 * 1_024 * 1_024), QUERY_THREADS_MAX: '2' });
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
  const asked = `${SERIES_START}&endDate=2026-03-01T02:59:59Z&interval=hour&measure=users`;
  for (const parameters of [asked, `${asked}&groupBy=event`]) {
    const report = await readSeries(service, parameters);
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
  const { exact, series: lines } = await readSeries(service, `${asked}&userId[prefix]=12`);
  expect([exact, lines[0]?.values[1]]).toEqual([true, 110_000]);
});
