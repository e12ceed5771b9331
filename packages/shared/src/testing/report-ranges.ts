/** What a view or a page of the console asks for, and the dates and the interval that its series gets then. */
export interface ReportRange {
  readonly timeZone: string;
  readonly now: string;
  readonly parameters: Readonly<Record<string, string>>;
  readonly expected: Readonly<Record<'startDate' | 'endDate' | 'interval', string | undefined>>;
}

function range(
  timeZone: string,
  now: string,
  parameters: Readonly<Record<string, string>>,
  startDate: string,
  interval: string,
  endDate?: string,
): ReportRange {
  return { timeZone, now, parameters, expected: { startDate, endDate, interval } };
}

/** Examples of ranges: query-api resolves those of views, the console those of its pages, each in its zone. */
export const REPORT_RANGES: readonly ReportRange[] = [
  range('Europe/Berlin', '2026-03-15T11:30:00.000Z', {}, '2026-02-13T23:00:00.000Z', 'day'),
  range('Europe/Berlin', '2026-03-15T11:30:00.000Z', { range: '1h' }, '2026-03-15T10:30:00.000Z', 'minute'),
  range('Europe/Berlin', '2026-03-15T11:30:00.000Z', { range: '24h' }, '2026-03-14T11:30:00.000Z', 'hour'),
  // The clocks change on 29 March.
  range('Europe/Berlin', '2026-03-31T11:30:00.000Z', { range: '7d' }, '2026-03-24T23:00:00.000Z', 'day'),
  range('Europe/Berlin', '2026-03-31T22:30:00.000Z', { range: '7d' }, '2026-03-25T23:00:00.000Z', 'day'),
  range('Europe/Berlin', '2026-03-31T11:30:00.000Z', { range: '90d' }, '2025-12-31T23:00:00.000Z', 'day'),
  // A year that begins in another month, from a day that not every month has.
  range('Europe/Berlin', '2026-03-31T11:30:00.000Z', { range: '12m' }, '2025-03-31T22:00:00.000Z', 'month'),
  range('Pacific/Kiritimati', '2026-03-31T11:30:00.000Z', { range: '60m' }, '2021-04-30T10:00:00.000Z', 'month'),
  // Midnight of 8 March did not happen in Havana.
  range('America/Havana', '2026-03-09T15:00:00.000Z', { range: '7d' }, '2026-03-03T05:00:00.000Z', 'day'),
  range('America/Havana', '2026-03-14T15:00:00.000Z', { range: '7d' }, '2026-03-08T05:00:00.000Z', 'day'),
  // A date alone is a day of the zone, also before 1970, and counts instead of the range.
  range(
    'America/New_York',
    '2026-03-15T11:30:00.000Z',
    { startDate: '1969-12-31', endDate: '1970-01-01', range: '7d' },
    '1969-12-31T05:00:00.000Z',
    'hour',
    '1970-01-02T04:59:59.999Z',
  ),
  range(
    'UTC',
    '2026-03-15T11:30:00.000Z',
    { startDate: '2026-01-01T10:00:00Z', endDate: '2026-01-02T10:00:00Z', interval: 'week' },
    '2026-01-01T10:00:00Z',
    'week',
    '2026-01-02T10:00:00Z',
  ),
];
