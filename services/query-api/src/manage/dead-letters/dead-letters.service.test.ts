import { visitorOf } from '@sluice/shared/rows/deleted-person';
import { createDocumentChecker } from '@sluice/shared/testing/openapi';
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { type QueryService, startQuery } from '../../testing/query-service.ts';
import { Receiver } from '../../testing/webhooks.ts';
import { REPLAY_BODY_BYTES_MAX } from './dead-letters-route.ts';

let query: QueryService;

beforeAll(async () => {
  query = await startQuery(inject('clickhouseUrl'));
});
afterAll(() => query.stop());

/** The row of an event of a workspace, as ingest-api writes it. */
function row(workspace: string, more: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({ workspace_id: workspace, timestamp: 1, uuid: 'u', ...more, received_at: 5 });
}

/** A dead letter as the writer stores it, with its id in the name of its event. */
function letter(id: string, given: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  const place = { kind: 'events', format: '1', topic: 't', partition: 3, offset: 7, line: 2 };
  return { id, ...place, reason: 'CANNOT_PARSE_NUMBER: no', row: row('a', { event: id }), ...given };
}

interface Page {
  readonly results: readonly { readonly id: string }[];
  readonly nextCursor: string | null;
}

async function list(parameters = '', key = 'admin-a'): Promise<string[]> {
  const { status, body, text } = await query.get(`/dead-letters${parameters}`, key);
  expect([status, text]).toEqual([200, expect.anything()]);
  return (body as unknown as Page).results.map(({ id }) => id);
}

test('dead letters come the newest first, page by page, by state and kind', async () => {
  await query.insert('dead_letters', [
    letter('c1', { row: row('c'), recorded_at: 1_700_000_000_000 }),
    letter('c2', { row: row('c'), recorded_at: 1_700_000_000_001, replayed_at: 1_700_000_000_002 }),
    // In the same millisecond, as a batch stores them.
    letter('c3', { row: row('c'), recorded_at: 1_700_000_000_003, kind: 'changes' }),
    letter('c4', { row: row('c'), recorded_at: 1_700_000_000_003 }),
  ]);
  expect(await list('', 'admin-c')).toEqual(['c4', 'c3', 'c2', 'c1']);
  expect(await list('?replayed=false', 'admin-c')).toEqual(['c4', 'c3', 'c1']);
  expect(await list('?replayed=true', 'admin-c')).toEqual(['c2']);
  expect(await list('?kind=changes', 'admin-c')).toEqual(['c3']);
  const seen: string[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { body } = await query.get(`/dead-letters?limit=1${cursor && `&cursor=${cursor}`}`, 'admin-c');
    const page = body as unknown as Page;
    seen.push(...page.results.map(({ id }) => id));
    cursor = page.nextCursor;
  }
  expect(seen).toEqual(['c4', 'c3', 'c2', 'c1']);
});

test('a dead letter that was replayed and failed again is listed once, in its newest state and at its newest place', async () => {
  const stored = (id: string, recorded_at: number, state_at: number, replayed_at: number | null = null) =>
    query.insert('dead_letters', [letter(id, { row: row('h'), recorded_at, replayed_at, state_at: state_at * 1_000 })]);
  // `GET /pipeline` counts those of the last 30 days.
  const at = Date.now() - 60_000;
  await stored('n1', at, at);
  await stored('n2', at + 1, at + 1);
  await stored('n3', at + 2, at + 2);
  // Replayed; and replayed and failed again.
  await stored('n3', at + 2, at + 3, at + 3);
  await stored('n1', at, at + 3, at + 3);
  await stored('n1', at + 4, at + 4);
  expect(await list('', 'admin-h')).toEqual(['n1', 'n3', 'n2']);
  expect(await list('?replayed=false', 'admin-h')).toEqual(['n1', 'n2']);
  expect(await list('?replayed=true', 'admin-h')).toEqual(['n3']);
  expect(await list('?limit=2', 'admin-h')).toEqual(['n1', 'n3']);
  expect((await query.get('/dead-letters/n1', 'admin-h')).body).toMatchObject({ replayedAt: null });
  expect((await query.get('/dead-letters/n3', 'admin-h')).body).toMatchObject({ replayedAt: expect.any(String) });
  const { body } = await query.get('/pipeline', 'admin-h');
  expect(body).toMatchObject({ deadLetters: { waiting: 2 } });
});

test('reasons are counted by kind and client, each dead letter once in its newest state, and a list has those of one', async () => {
  // Rejected calls of more than 30 days are gone.
  const start = Date.now() - 60_000;
  const stored = (id: string, reason: string, more: object = {}) =>
    letter(id, { row: row('g'), reason, recorded_at: start, ...more });
  const rejected = (id: string, at: number, client: string) => ({
    ...stored(id, 'no type', { kind: 'rejected', recorded_at: start + at }),
    row: JSON.stringify({ workspace_id: 'g', client, call: '{}', received_at: 5 }),
  });
  await query.insert('dead_letters', [
    ...[rejected('r1', 1, 'php'), rejected('r2', 3, 'php'), rejected('r3', 2, 'swift')],
    stored('r4', 'no number'),
    stored('r5', 'no number', { state_at: start * 1_000 }),
    stored('r6', 'no number', { replayed_at: start, state_at: start * 1_000 + 1 }),
  ]);
  // The newest state counts, whichever is stored last.
  await query.insert('dead_letters', [
    stored('r5', 'no number', { replayed_at: start, state_at: start * 1_000 + 1 }),
    stored('r6', 'no number', { state_at: start * 1_000 }),
  ]);
  const reasons = async (parameters = '') => {
    const { body } = await query.get(`/dead-letters/reasons${parameters}`, 'admin-g');
    const { results, isWhole } = body as unknown as { results: Record<string, unknown>[]; isWhole: boolean };
    expect(isWhole).toBe(true);
    return results.map(({ kind, client, reason, count, newestId }) => [kind, client, reason, count, newestId]);
  };
  const [php, swift] = [
    ['rejected', 'php', 'no type', 2, 'r2'],
    ['rejected', 'swift', 'no type', 1, 'r3'],
  ];
  expect(await reasons()).toEqual([['events', null, 'no number', 3, expect.stringMatching(/^r[456]$/)], php, swift]);
  expect(await reasons('?replayed=false')).toEqual([php, swift, ['events', null, 'no number', 1, 'r4']]);
  expect(await reasons('?replayed=true')).toEqual([['events', null, 'no number', 2, expect.stringMatching(/^r[56]$/)]]);
  expect(await reasons('?kind=events&replayed=true&limit=1')).toHaveLength(1);
  expect(await list('?reason=no%20type', 'admin-g')).toEqual(['r2', 'r3', 'r1']);
  expect(await list('?reason=no', 'admin-g')).toEqual([]);
  const wrong = await query.get('/dead-letters/reasons?replayed=x&cursor=y', 'admin-g');
  expect([wrong.status, wrong.body.errors.map(({ path }) => path)]).toEqual([400, ['replayed', 'cursor']]);
});

test('a dead letter has its reason, its place and its row as it came', async () => {
  const hostile = row('d', { event: '\u202e<img src=x onerror=alert(1)>\u0000 🦊' });
  await query.insert('dead_letters', [letter('d1', { row: hostile, recorded_at: 1_700_000_000_000 })]);
  const { status, body } = await query.get('/dead-letters/d1', 'admin-d');
  expect([status, body]).toEqual([
    200,
    {
      ...{ id: 'd1', recordedAt: '2023-11-14T22:13:20.000Z', replayedAt: null, kind: 'events', topic: 't' },
      ...{
        partition: 3,
        offset: '7',
        line: 2,
        reason: 'CANNOT_PARSE_NUMBER: no',
        client: null,
        bytes: Buffer.byteLength(hostile),
      },
      row: hostile,
    },
  ]);
});

test('a rejected call has the client that sent it, where ingest-api knew it, whatever the call says', async () => {
  const call = '"client":"mine"';
  const rejected = (id: string, client?: string) =>
    letter(id, { kind: 'rejected', row: JSON.stringify({ workspace_id: 'b', client, call, received_at: 5 }) });
  await query.insert('dead_letters', [
    rejected('i1', 'analytics-php'),
    rejected('i2'),
    letter('i3', { row: row('b', { client: 'mine' }) }),
  ]);
  const { body } = await query.get('/dead-letters', 'admin-b');
  const found = (body as unknown as { results: { id: string; client: string | null }[] }).results;
  expect(Object.fromEntries(found.map(({ id, client }) => [id, client]))).toMatchObject({
    ...{ i1: 'analytics-php', i2: null, i3: null },
  });
  expect((await query.get('/dead-letters/i1', 'admin-b')).body).toMatchObject({ client: 'analytics-php' });
});

test('a workspace sees nothing of another one, nor what may be of several or of none', async () => {
  const own = letter('own');
  const others = [
    letter('of-b', { row: row('b') }),
    // A message that cannot be read: its first row is of the workspace, the next is not.
    letter('message', { format: '2', row: `${row('a')}\n${row('b')}\n` }),
    // Nobody knows what a row of another format means.
    letter('other-format', { format: '2' }),
    letter('two-rows', { row: `${row('a')}\n${row('b')}` }),
    letter('of-nobody', { row: 'not JSON' }),
    // Rows that only name the workspace somewhere.
    letter('inside', { row: JSON.stringify({ properties: { workspace_id: 'a' }, workspace_id: 'b' }) }),
    letter('later', { row: `{"x":1,"workspace_id":"a"` }),
    letter('prefix', { row: row('a'.repeat(2)) }),
    letter('wildcard', { row: row('%') }),
  ];
  await query.insert('dead_letters', [own, ...others]);
  expect(await list()).toEqual(['own']);
  for (const { id } of others) {
    expect(await query.get(`/dead-letters/${id}`, 'admin-a')).toMatchObject({ status: 404 });
    const replay = {
      method: 'POST',
      url: `/dead-letters/${id}/replay`,
      headers: { authorization: 'Bearer admin-a' },
    } as const;
    expect((await query.app.inject(replay)).statusCode).toBe(404);
  }
});

test('a row that is cut off is shown to its workspace all the same', async () => {
  await query.insert('dead_letters', [letter('cut', { row: row('e').slice(0, -3) })]);
  expect(await list('', 'admin-e')).toEqual(['cut']);
});

test('what names a deleted user is hidden at once, and what came since is not', async () => {
  await query.insert('dead_letters', [
    letter('before', { row: row('f', { user_id: 'jane' }) }),
    letter('since', { row: `${row('f', { user_id: 'jane' }).slice(0, -2)}900}` }),
    letter('other', { row: row('f', { user_id: 'john' }) }),
  ]);
  expect((await list('', 'admin-f')).toSorted()).toEqual(['before', 'other', 'since']);
  await query.insert('pending_deletions', [{ workspace_id: 'f', user_id: 'jane', version: 100 }]);
  expect((await list('', 'admin-f')).toSorted()).toEqual(['other', 'since']);
  expect(await query.get('/dead-letters/before', 'admin-f')).toMatchObject({ status: 404 });
  await query.insert('dead_letters', [letter('of a visitor', { row: row('f', { anonymous_id: 'v' }) })]);
  await query.insert('pending_deletions', [{ workspace_id: 'f', user_id: visitorOf('v'), version: 100 }]);
  expect((await list('', 'admin-f')).toSorted()).toEqual(['other', 'since']);
});

test.each([
  ['?replayed=maybe&kind=deletions&limit=x&page=2', ['replayed', 'kind', 'limit', 'page']],
  ['?cursor=nonsense', ['cursor']],
  ['?kind=events&kind=changes', ['kind']],
])('the faults of %s are all named', async (parameters, paths) => {
  const { status, body } = await query.get(`/dead-letters${parameters}`, 'admin-a');
  expect([status, body.errors.map(({ path }) => path)]).toEqual([400, paths]);
});

test('a cursor is of its workspace and its list alone', async () => {
  await query.insert('dead_letters', [letter('g1', { row: row('g') }), letter('g2', { row: row('g') })]);
  const { nextCursor } = (await query.get('/dead-letters?limit=1', 'admin-g')).body;
  expect((await query.get(`/dead-letters?cursor=${nextCursor}`, 'admin-a')).status).toBe(400);
  expect((await query.get(`/dead-letters?kind=events&cursor=${nextCursor}`, 'admin-g')).status).toBe(400);
});

test.each([
  ['GET', '/dead-letters'],
  ['GET', '/dead-letters/reasons'],
  ['GET', '/dead-letters/own'],
  ['POST', '/dead-letters/own/replay'],
] as const)('%s %s needs the scope admin', async (method, url) => {
  const send = (headers: Record<string, string>) => query.app.inject({ method, url, headers });
  for (const key of ['a', 'sql-a', 'webhooks-a', 'ingest-only']) {
    expect((await send({ authorization: `Bearer ${key}` })).json()).toMatchObject({ code: 'missing_scope' });
  }
  expect((await send({})).statusCode).toBe(401);
});

test('where no writer is known, replay gets 501 with the command', async () => {
  await query.insert('dead_letters', [letter('h1', { row: row('h') })]);
  const request = {
    method: 'POST',
    url: '/dead-letters/h1/replay',
    headers: { authorization: 'Bearer admin-h' },
  } as const;
  const response = await query.app.inject(request);
  expect([response.statusCode, response.json()]).toMatchObject([501, { code: 'replay_not_available' }]);
  expect(response.json().detail).toContain('sluice dead-letters replay h1');
});

test('the responses are as documented', async () => {
  const checker = createDocumentChecker((await query.app.inject('/openapi.json')).json());
  const headers = { authorization: 'Bearer admin-d' };
  const page = await query.app.inject({ url: '/dead-letters?limit=1', headers });
  expect(checker.errorsOfResponse('GET /dead-letters', page)).toBeUndefined();
  const reasons = await query.app.inject({ url: '/dead-letters/reasons', headers });
  expect(checker.errorsOfResponse('GET /dead-letters/reasons', reasons)).toBeUndefined();
  const one = await query.app.inject({ url: '/dead-letters/d1', headers });
  expect(checker.errorsOfResponse('GET /dead-letters/{id}', one)).toBeUndefined();
});

test('the first writer that responds replays, and says what cannot be taken', async () => {
  await using receiver = await Receiver.start();
  const writer = receiver.url.replace('/events', '/');
  // Nothing listens on port 9.
  const service = await startQuery(inject('clickhouseUrl'), { REPLAY_URL: `http://127.0.0.1:9,${writer}` });
  onTestFinished(service.stop);
  await service.insert('dead_letters', [letter('a b', { row: row('a') })]);
  const replay = async () => {
    const request = {
      method: 'POST',
      url: '/dead-letters/a%20b/replay',
      headers: { authorization: 'Bearer admin-a' },
    } as const;
    const response = await service.app.inject(request);
    return [response.statusCode, response.body === '' ? '' : response.json().detail];
  };
  const paths: unknown[] = [];
  const respond = (status: number, body = '') => {
    receiver.behaviour = (_, response) => {
      paths.push(response.req.url);
      response.writeHead(status).end(body);
    };
  };
  respond(204);
  expect(await replay()).toEqual([204, '']);
  respond(409, '{"detail":"Only the beginning of the call is kept."}');
  expect(await replay()).toEqual([409, 'Only the beginning of the call is kept.']);
  respond(503, 'a proxy');
  expect(await replay()).toEqual([503, expect.stringContaining('send the request again')]);
  expect(new Set(paths)).toEqual(new Set(['/dead-letters/a%20b/replay']));
});

test('a rejected call is changed by a key that may send events, and by no other; a row never is', async () => {
  await using receiver = await Receiver.start();
  const service = await startQuery(inject('clickhouseUrl'), { REPLAY_URL: receiver.url.replace('/events', '/') });
  onTestFinished(service.stop);
  const call = '{"event":"e"}';
  const row = JSON.stringify({ workspace_id: 'a', call: '{}', received_at: 5 });
  await service.insert('dead_letters', [letter('rejected', { kind: 'rejected', row }), letter('row')]);
  const bodies: string[] = [];
  receiver.behaviour = async ({ body }, response) => {
    bodies.push(String(body));
    response.writeHead(204).end();
  };
  const replay = async (key: string, payload: object | string, id = 'rejected') => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const response = await service.app.inject({ method: 'POST', url: `/dead-letters/${id}/replay`, headers, payload });
    return [response.statusCode, response.body === '' ? '' : response.json().code];
  };
  expect(await replay('admin-a', { call })).toEqual([403, 'missing_scope']);
  for (const wrong of ['', '1', '[{}]', '{}],"x":[{}', '{},{}', 'null']) {
    expect([wrong, ...(await replay('sender-a', { call: wrong }))]).toEqual([wrong, 400, 'invalid_request']);
  }
  expect(await replay('sender-a', { call, workspace_id: 'b' })).toEqual([400, 'invalid_request']);
  expect(await replay('sender-a', `{"call":${'"'.padEnd(REPLAY_BODY_BYTES_MAX)}"}`)).toEqual([413, 'body_too_large']);
  expect(await replay('sender-a', { call }, 'row')).toEqual([409, 'not_replayable']);
  expect(bodies).toEqual([]);
  expect(await replay('sender-a', { call })).toEqual([204, '']);
  expect(bodies.map((body) => JSON.parse(body))).toEqual([{ call }]);
});
