import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { type QueryService, startQuery } from '../../testing/query-service.ts';

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'), { INGEST_URLS: 'http://127.0.0.1:9, http://127.0.0.1:9/' });
});
afterAll(() => query.stop());

interface DeadLetter {
  readonly id: string;
  readonly workspace?: string;
  readonly recordedAt: Date;
  readonly replayedAt?: Date;
  readonly stateAt?: Date;
  /** Default: events. */
  readonly kind?: string;
}

async function storeDeadLetters(deadLetters: readonly DeadLetter[]): Promise<void> {
  await query.insert(
    'dead_letters',
    deadLetters.map(({ id, workspace, recordedAt, replayedAt, stateAt = recordedAt, kind = 'events' }) => ({
      ...{ id, kind, format: '1', topic: 't', partition: 0, offset: 0, line: 0, reason: 'r' },
      row: workspace === undefined ? 'not JSON' : JSON.stringify({ workspace_id: workspace }),
      recorded_at: recordedAt.getTime(),
      replayed_at: replayedAt?.getTime() ?? null,
      state_at: stateAt.getTime() * 1_000,
    })),
  );
}

test('it counts the dead letters of the last 30 days of the workspace alone, each once, in its newest state', async () => {
  const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000);
  const replayed = { id: '2', workspace: 'a', recordedAt: hoursAgo(3) };
  await storeDeadLetters([
    { id: '1', workspace: 'a', recordedAt: hoursAgo(30) },
    replayed,
    { id: '3', workspace: 'a', recordedAt: hoursAgo(2) },
    { id: '4', workspace: 'b', recordedAt: hoursAgo(1) },
    { id: '5', recordedAt: hoursAgo(1) },
    { id: '6', workspace: 'a', recordedAt: hoursAgo(30 * 24 + 1) },
    { id: '7', workspace: 'e', recordedAt: hoursAgo(30 * 24 + 1) },
  ]);
  await storeDeadLetters([{ ...replayed, replayedAt: hoursAgo(1), stateAt: hoursAgo(1) }]);
  const { body } = await query.get('/pipeline');
  expect(body).toMatchObject({
    deadLetters: { waiting: 2, lastDay: 2, newestAt: expect.any(String), countedFrom: expect.any(String) },
  });
  expect((await query.get('/pipeline', 'b')).body).toMatchObject({ deadLetters: { waiting: 1, lastDay: 1 } });
  for (const workspace of ['c', 'e']) {
    expect((await query.get('/pipeline', workspace)).body).toMatchObject({
      deadLetters: { waiting: 0, lastDay: 0, newestAt: null },
    });
  }
});

test('it counts calls that were rejected in the last day and not replayed', async () => {
  const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000);
  const rejected = { workspace: 'd', kind: 'rejected', recordedAt: hoursAgo(1) };
  await storeDeadLetters([
    { ...rejected, id: 'r1' },
    { ...rejected, id: 'r2' },
    { ...rejected, id: 'r3', recordedAt: hoursAgo(30) },
    { ...rejected, id: 'r4', replayedAt: hoursAgo(0.5) },
    { ...rejected, id: 'r5', kind: 'events' },
    { ...rejected, id: 'r6', workspace: 'b' },
  ]);
  const { body } = await query.get('/pipeline', 'd');
  expect(body).toMatchObject({ deadLetters: { waiting: 4, lastDay: 4, rejectedLastDay: 2 } });
});

test('it says what it does not know, and why', async () => {
  expect((await query.get('/pipeline')).body).toMatchObject({
    ...{ accepted: null, lag: null, writers: null, clickHouse: null, erasures: null, backup: null, keysFile: null },
    missing: [
      'An ingest-api of INGEST_URLS does not respond.',
      'WRITER_URL is not set, so query-api does not know the lag.',
    ],
  });
});

test('it needs a key that may query, and takes no parameters', async () => {
  expect((await query.app.inject('/pipeline')).statusCode).toBe(401);
  expect((await query.get('/pipeline', 'ingest-only')).status).toBe(403);
  expect((await query.get('/pipeline?limit=1')).status).toBe(400);
});
