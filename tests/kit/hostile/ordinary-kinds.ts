/** The queries of the ordinary tenant. All are about January 2026, to which nobody adds anything. */
export const ORDINARY_QUERIES = {
  page: '/events?startDate=2026-01-01&endDate=2026-01-31&limit=20&total=none',
  filtered: '/events?startDate=2026-01-01&endDate=2026-01-31&properties.plan=pro&userId=user-7&limit=20&total=none',
  series: '/events/series?startDate=2026-01-01&endDate=2026-01-31&groupBy=event',
  users: '/users?limit=20',
  names: '/events/names?startDate=2026-01-01&endDate=2026-01-31',
} as const;

/** What the ordinary tenant does, each over and over. `control` asks a server that nobody else uses. */
export const KINDS = [...Object.keys(ORDINARY_QUERIES), 'submit', 'large', 'stream', 'control'] as const;
