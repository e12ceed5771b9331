import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { type QueryService, startQuery, TEST_WORKSPACES } from '../../testing/query-service.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** The first of the days that are audited here. */
const FIRST = Date.UTC(2026, 2, 1);

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), { OPERATOR_WORKSPACE: 'h' });
});
afterAll(() => query.stop());

interface Hour {
  readonly workspace: string;
  readonly hourMs: number;
  /** Default: events. */
  readonly kind?: string;
  readonly counts: Readonly<Record<string, number>>;
}

interface Audit {
  readonly sinceMs: number;
  readonly untilMs: number;
  /** Default: all. */
  readonly workspace?: string;
  /** Default: it looked at all rows. */
  readonly shares?: number;
  readonly hours: readonly Hour[];
  readonly differences?: readonly (Pick<Hour, 'workspace' | 'hourMs'> & Readonly<Record<string, unknown>>)[];
}

let seconds = 0;

/** Stores what an audit stores. Each is made after the one before. */
async function audit({ sinceMs, untilMs, workspace = '', shares = 1, hours, differences = [] }: Audit) {
  seconds += 1;
  const id = randomUUID();
  const atUs = (Date.UTC(2026, 6, 1) + seconds * 1_000) * 1_000;
  const times = { started_at: atUs, finished_at: atUs + 1, since: sinceMs / 1_000, until: untilMs / 1_000 };
  const notes = ['the workspace of somebody else is not whole'];
  await query.insert('audits', [
    { id, started_at: atUs, shares, since: sinceMs / 1_000, until: untilMs / 1_000, state_at: atUs },
    {
      id,
      ...times,
      workspace_id: workspace,
      share: 0,
      shares,
      accepted: 9_999,
      missing: 7_777,
      notes,
      state_at: atUs + 1,
    },
  ]);
  if (hours.length > 0) {
    const rows = hours.map(({ workspace: of, hourMs, kind = 'events', counts }) => ({
      ...{ workspace_id: of, hour: hourMs / 1_000, kind, audit_id: id, audited_at: atUs + 1, ...counts },
    }));
    await query.insert('audited_hours', rows);
  }
  if (differences.length > 0) {
    const rows = differences.map(({ workspace: of, hourMs, ...difference }) => ({
      ...{ audit_id: id, workspace_id: of, hour: hourMs / 1_000, kind: 'events', ...difference },
    }));
    await query.insert('audit_differences', rows);
  }
  return id;
}

const NOTHING = {
  ...{ accepted: 0, stored: 0, repeats: 0, deadLetters: 0, deleted: 0, expired: 0, waiting: 0 },
  ...{ givenUp: 0, unknown: 0, missing: 0, invented: 0, duplicates: 0 },
};
const counted = (counts: Partial<typeof NOTHING>) => ({ ...NOTHING, ...counts });

test('the books of a workspace are those that the newest audit of each hour has, by hour, day and month', async () => {
  const found = { workspace: 'a', hourMs: FIRST + HOUR_MS };
  const lost = { difference: 'missing', topic: 't', partition: 3, offset: 12, line: 1, detail: 'it is nowhere' };
  const first = await audit({
    ...{ sinceMs: FIRST, untilMs: FIRST + DAY_MS },
    hours: [
      { ...found, counts: { accepted: 10, stored: 7, repeats: 1, missing: 2 } },
      { ...found, hourMs: FIRST + 2 * HOUR_MS, counts: { accepted: 3, stored: 2, dead_letters: 1 } },
      { ...found, kind: 'changes', counts: { accepted: 4, stored: 3, deleted: 1 } },
      { ...found, kind: 'rejected', counts: { accepted: 5, dead_letters: 4, given_up: 1 } },
      { ...found, workspace: 'b', counts: { accepted: 100, stored: 99, missing: 1 } },
    ],
    differences: [
      { ...found, ...lost, key: 'u1' },
      { ...found, ...lost, key: 'u2' },
      { ...found, ...lost, key: 'of b', workspace: 'b' },
    ],
  });
  await audit({
    ...{ sinceMs: FIRST + DAY_MS, untilMs: FIRST + DAY_MS + 6 * HOUR_MS },
    hours: [{ ...found, hourMs: FIRST + DAY_MS + HOUR_MS, counts: { accepted: 1, stored: 1 } }],
  });
  // A sample has no books, and does not say that hours are audited; that of another workspace is not shown.
  await audit({ sinceMs: FIRST + DAY_MS, untilMs: FIRST + 2 * DAY_MS, shares: 8, hours: [] });
  await audit({ sinceMs: FIRST + DAY_MS, untilMs: FIRST + 2 * DAY_MS, workspace: 'b', hours: [] });

  const dates = 'startDate=2026-03-01&endDate=2026-03-31';
  const firstDay = {
    ...{ start: '2026-03-01T00:00:00.000Z', auditedHours: 24 },
    events: counted({ accepted: 13, stored: 9, repeats: 1, deadLetters: 1, missing: 2 }),
    changes: counted({ accepted: 4, stored: 3, deleted: 1 }),
    rejected: counted({ accepted: 5, deadLetters: 4, givenUp: 1 }),
  };
  const empty = { changes: NOTHING, rejected: NOTHING };
  const events = counted({ accepted: 1, stored: 1 });
  const secondDay = { start: '2026-03-02T00:00:00.000Z', auditedHours: 6, events, ...empty };
  const { body, text } = await query.get(`/audits?${dates}`);
  const { start: _, auditedHours: __, ...books } = firstDay;
  const hour = '2026-03-01T01:00:00.000Z';
  const difference = { auditId: first, hour, kind: 'events', ...lost, offset: '12' };
  expect(body).toMatchObject({
    ...{ interval: 'day', startDate: '2026-03-01T00:00:00.000Z', endDate: '2026-03-31T23:59:59.999Z' },
    auditedThrough: '2026-03-02T06:00:00.000Z',
    books: [firstDay, secondDay],
    audits: [
      { shares: 8, books: null },
      { shares: 1, books: { events } },
      { id: first, books },
    ],
    differences: [
      { ...difference, key: 'u1' },
      { ...difference, key: 'u2' },
    ],
  });
  expect((body as unknown as { audits: unknown[] }).audits).toHaveLength(3);
  // What concerns others: a note, sums of all, uuids.
  for (const secret of ['somebody', '9999', '7777', 'of b']) expect(text).not.toContain(secret);

  expect((await query.get(`/audits?${dates}&interval=month`)).body).toMatchObject({
    books: [{ start: '2026-03-01T00:00:00.000Z', auditedHours: 30, events: { accepted: 14, stored: 10 } }],
  });
  expect(
    (await query.get('/audits?startDate=2026-03-01T01:00:00Z&endDate=2026-03-01T01:59:59Z&interval=hour')).body,
  ).toMatchObject({
    books: [{ start: hour, auditedHours: 1, events: { accepted: 10, missing: 2 } }],
  });

  // A later audit of the same hours finds the rows: nothing is missing any more.
  const later = await audit({
    ...{ sinceMs: FIRST, untilMs: FIRST + 3 * HOUR_MS, workspace: 'a' },
    hours: [{ ...found, counts: { accepted: 10, stored: 9, repeats: 1 } }],
  });
  expect((await query.get(`/audits?${dates}`)).body).toMatchObject({
    books: [{ events: { accepted: 13, stored: 11, missing: 0 }, changes: { accepted: 4 } }, secondDay],
    audits: [
      { id: later, books: { events: { accepted: 10 } } },
      {},
      {},
      { id: first, books: { events: { accepted: 3 } } },
    ],
    differences: [],
  });
  expect((await query.get(`/audits?${dates}`, 'b')).body).toMatchObject({
    books: [{ events: { accepted: 100, missing: 1 } }, { auditedHours: 24 }],
    differences: [{ key: 'of b' }],
  });
});

test('what names a user who was deleted since then is not shown', async () => {
  const hour = { workspace: 'g', hourMs: FIRST };
  const change = (id: string, entity = 'user') => JSON.stringify([entity, id, 'set', 'plan']);
  const missing = { ...hour, kind: 'changes', difference: 'missing' };
  await audit({
    ...{ sinceMs: FIRST, untilMs: FIRST + HOUR_MS },
    hours: [{ ...hour, kind: 'changes', counts: { accepted: 4, missing: 4 } }],
    differences: [
      { ...missing, key: change('gone') },
      { ...missing, key: change('gone', 'organization') },
      { ...missing, key: change('ann') },
      { ...missing, key: change('returned') },
    ],
  });
  await query.insert('user_deletions', [
    { workspace_id: 'g', user_id: 'gone', version: (FIRST + HOUR_MS) * 1_000 },
    { workspace_id: 'g', user_id: 'returned', version: (FIRST - HOUR_MS) * 1_000 },
    { workspace_id: 'f', user_id: 'ann', version: (FIRST + HOUR_MS) * 1_000 },
  ]);
  const { body } = await query.get('/audits?startDate=2026-03-01&endDate=2026-03-01', 'g');
  const { differences } = body as unknown as { differences: readonly { key: string }[] };
  expect(differences.map(({ key }) => key)).toEqual(
    [change('gone', 'organization'), change('ann'), change('returned')].toSorted(),
  );
});

test('without an audit there are no books, and nothing is said to be audited', async () => {
  const { status, body } = await query.get('/audits?startDate=2025-01-01&endDate=2025-01-31', 'c');
  expect(status).toBe(200);
  expect(body).toMatchObject({ books: [], differences: [] });
  const own = await startQuery(inject('clickhouseUrl'));
  try {
    const nothing = { auditedThrough: null, books: [], audits: [], differences: [] };
    expect((await own.get('/audits')).body).toMatchObject({ interval: 'day', ...nothing });
  } finally {
    await own.stop();
  }
});

test('the operator sees the books of all workspaces, page by page; who manages another workspace does not', async () => {
  const hourMs = Date.UTC(2026, 5, 1);
  const hours = ['d', 'e', 'f'].map((workspace, index) => ({
    ...{ workspace, hourMs, counts: { accepted: index + 1, stored: index + 1 } },
  }));
  await audit({ sinceMs: hourMs, untilMs: hourMs + DAY_MS, hours });
  const path = '/audits/workspaces?startDate=2026-06-01&endDate=2026-06-30';
  const { body } = await query.get(`${path}&limit=2`, 'admin-h');
  expect(body).toMatchObject({
    limit: 2,
    results: [
      { workspace: 'd', events: { accepted: 1 }, changes: { accepted: 0 } },
      { workspace: 'e', events: { accepted: 2 } },
    ],
  });
  const next = await query.get(`${path}&limit=2&cursor=${body.nextCursor}`, 'admin-h');
  expect(next.body).toMatchObject({ results: [{ workspace: 'f', events: counted({ accepted: 3, stored: 3 }) }] });
  expect(next.body.nextCursor).toBeNull();
  for (const key of ['h', ...TEST_WORKSPACES.slice(0, -1).map((workspace) => `admin-${workspace}`)]) {
    const refused = await query.get(path, key);
    expect([refused.status, refused.body.code]).toEqual([403, 'missing_scope']);
    expect(refused.text).not.toContain('accepted');
  }
});

test('the books of others cost a workspace nothing', async () => {
  const limits = { OPERATOR_WORKSPACE: 'h', QUERY_ROWS_READ_MAX: '40000' };
  const own = await startQuery(inject('clickhouseUrl'), limits);
  try {
    const audit = randomUUID();
    const hour = FIRST / 1_000;
    await own.insert('audits', [
      { id: audit, finished_at: FIRST * 1_000, since: hour, until: hour + 3_600, shares: 1 },
    ]);
    const ofAudit = { workspace_id: 'b', hour, kind: 'events', audit_id: audit };
    await own.insert('audited_hours', [{ ...ofAudit, accepted: 2, stored: 1, missing: 1 }]);
    await own.insert('audit_differences', [{ ...ofAudit, difference: 'missing', key: 'u' }]);
    // Before and behind its own, in the order of the tables.
    for (const others of ['a', 'c']) {
      await own.clickHouse.command({
        query: `INSERT INTO audited_hours (workspace_id, hour, kind, accepted, missing)
          SELECT {others:String} || toString(number % 200), {hour:UInt32} + 3600 * intDiv(number, 200), 'events', 1, 1
          FROM numbers(100000)`,
        query_params: { others, hour },
      });
      await own.clickHouse.command({
        query: `INSERT INTO audit_differences (audit_id, workspace_id, hour, kind)
          SELECT generateUUIDv4(), {others:String}, {hour:UInt32}, 'events' FROM numbers(100000)`,
        query_params: { others, hour },
      });
    }
    const { status, body } = await own.get('/audits?startDate=2026-03-01&endDate=2026-12-31&interval=month', 'b');
    expect(status).toBe(200);
    expect(body).toMatchObject({ books: [{ events: { accepted: 2, missing: 1 } }], differences: [{ key: 'u' }] });
    // The operator asks for those of all.
    const ofAll = await own.get('/audits/workspaces?startDate=2026-03-01&endDate=2026-12-31', 'admin-h');
    expect(ofAll.body.code).toBe('query_too_expensive');
  } finally {
    await own.stop();
  }
});

test('wrong parameters are named, each of them', async () => {
  for (const path of ['/audits', '/audits/workspaces']) {
    const { status, body } = await query.get(`${path}?startDate=soon&interval=week&x=1`, 'admin-h');
    expect(status).toBe(400);
    expect(body.errors.map((error) => error.path).sort()).toEqual(['interval', 'startDate', 'x']);
  }
  const { body } = await query.get('/audits?startDate=2000-01-01&endDate=2026-01-01&interval=hour');
  expect(body.errors).toMatchObject([{ path: 'interval', code: 'too_many' }]);
  const reversed = await query.get('/audits?startDate=2026-01-02&endDate=2026-01-01');
  expect(reversed.body.errors).toMatchObject([{ path: 'startDate' }]);
  const cursor = await query.get('/audits/workspaces?startDate=2026-01-01&endDate=2026-01-02&cursor=x', 'admin-h');
  expect(cursor.body.errors).toMatchObject([{ path: 'cursor' }]);
});
