import { randomUUID } from 'node:crypto';
import { connect } from 'node:net';
import { PINNED_SETTINGS } from '@sluice/shared/clickhouse/settings';
import { visitorOf } from '@sluice/shared/rows/deleted-person';
import { eventually } from '@sluice/shared/testing/eventually';
import { CarriedTables, fenced } from '@sluice/storage/clickhouse/carried-tables';
import { type FormRequest, formSender } from '@sluice/storage/clickhouse/form-request';
import { NOT_RECORDED } from '@sluice/storage/clickhouse/ownership';
import type { Statement } from '@sluice/storage/clickhouse/statements';
import { Fenced } from '@sluice/storage/protocol/epoch';
import type { RowBatch } from '@sluice/storage/protocol/row-batch';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { batchOf, changeRow, createTestStore, eventRow, messages, NOON, type TestStore } from '../testing/store.ts';
import { type StagedBatch, StagedStore } from './staged-batch.ts';
import { STATEMENTS } from './statements.ts';

let db: TestStore;

beforeAll(async () => {
  db = await createTestStore(inject('clickhouseUrl'), undefined, 'carried');
});
afterAll(() => db.close());

const EPOCH = { incarnation: 1, generation: 7, server: '' };

/** A batch of which each statement that was sent is recorded. */
function openRecorded(batch: RowBatch, groupId: string): { batch: StagedBatch; sent: FormRequest[] } {
  const sent: FormRequest[] = [];
  const send = formSender(db.writerClient);
  const store = new StagedStore({
    ...{ client: db.writerClient, groupId, statementTimeoutMs: 60_000 },
    ownership: { queryIdPrefix: () => `test/${randomUUID()}` },
    carried: {
      async endStatements(prefix) {
        // What begins from now on must be refused: it may miss the KILL.
        expect(await db.read(`SELECT 1 FROM ended_batches WHERE id = '${prefix.split('/').at(-2)}'`)).toHaveLength(1);
        await db.writerClient.command({
          query: STATEMENTS['end-own-statements'].sql,
          query_params: { prefix },
        });
      },
      send(request) {
        sent.push(request);
        return send(request);
      },
    },
  });
  return { batch: store.open(batch, EPOCH, () => undefined), sent };
}

/** Rows of every kind, also such that repeat others and that users were deleted of, and one that cannot be stored. */
function rowsOfEachKind(workspace_id: string): RowBatch {
  const uuid = randomUUID();
  const at = { workspace_id, version: NOON * 1_000 + 10 };
  const batch = batchOf(
    [
      ...[
        eventRow({ workspace_id, user_id: 'u', group_id: 'g' }),
        eventRow({ workspace_id, user_id: 'gone', group_id: 'of gone' }),
      ],
      ...[1, 2].map((second) => eventRow({ workspace_id, uuid, timestamp: NOON + second, stamped: 1, user_id: 'u' })),
    ],
    [
      changeRow({ ...at, id: 'gone', operation: 'delete' }),
      changeRow({ ...at, id: 'u', operation: 'set', property: 'p', value: '1' }),
      changeRow({ ...at, id: 'u', operation: 'seen', group_id: 'g' }),
      changeRow({ ...at, id: 'u', operation: 'seen', version: at.version + 1 }),
      changeRow({ ...at, kind: 'visitor', id: 'v', operation: 'link', user_id: 'u' }),
    ],
  );
  return { ...batch, events: [...batch.events, ...messages('events', ['{"unknown":1}'])] };
}

const storing = ({ query }: FormRequest) => /^INSERT INTO/m.test(query);

/** How many rows each table has. */
async function stored(): Promise<unknown> {
  const tables = ['events', 'entities', 'entity_properties', 'user_sightings', 'identity_links', 'dead_letters'];
  const deletions = ['user_deletions', 'pending_deletions', 'identity_deletions'];
  const counts = [...tables, ...deletions].map((table) => `(SELECT count() FROM ${table}) AS ${table}`);
  return await db.read(`SELECT ${counts.join(', ')}`);
}

const STORING_STEPS = [
  ...['store-dead-letters', 'store-identity-deletions', 'store-deletions', 'store-pending-deletions'],
  ...['store-seen-in-deleted-events', 'store-links', 'store-properties', 'store-sightings'],
  ...['store-seen-in-changes-since-deletions', 'store-seen-in-events-since-deletions', 'store-events'],
];

/** Records the replica at which everything runs as gone, or as there again. */
async function recordReplica(isGone: boolean): Promise<void> {
  const newest = 'greatest(now64(6), max(writer_replicas.changed_at) + toIntervalMicrosecond(1))';
  await db.client.command({
    query: `INSERT INTO writer_replicas (replica, is_gone, changed_at)
      SELECT replica, ${isGone}, ${newest} FROM writer_replicas GROUP BY replica`,
  });
}

const REASONS = ['the attempt has ended', 'a newer epoch owns the partitions', NOT_RECORDED] as const;

describe.each(REASONS)('when %s', (why) => {
  test('whatever was sent before and arrives later stores nothing, also without rows', async () => {
    const groupId = `late ${why}`;
    const { batch, sent } = openRecorded(rowsOfEachKind(why), groupId);
    await batch.store();
    if (why === 'the attempt has ended') await batch.end();
    else if (why === NOT_RECORDED) {
      await recordReplica(true);
      onTestFinished(() => recordReplica(false));
    } else {
      const values = [{ group_id: groupId, incarnation: 1, generation: 8, leader_id: '' }];
      await db.client.insert({ table: 'writer_epochs', values, format: 'JSONEachRow' });
    }
    const late = sent.filter(storing);
    expect(new Set(late.map(nameOf))).toEqual(new Set(STORING_STEPS));
    const before = await stored();
    const send = formSender(db.writerClient);
    for (const request of late) {
      const again = { ...request, query_id: randomUUID() };
      await expect(send(again), nameOf(request)).rejects.toThrow(why);
      const empty = { ...again, tables: again.tables.map((table) => ({ ...table, chunks: [] })) };
      await expect(send(empty), nameOf(request)).rejects.toThrow(why);
    }
    expect(await stored()).toEqual(before);
  });
});

function nameOf({ query_id }: FormRequest): string | undefined {
  return query_id.split('/').at(-2);
}

test('an attempt that has ended begins nothing more, and its rows are stored by the next one', async () => {
  const rows = batchOf([eventRow({ workspace_id: 'ended' })]);
  const { batch } = openRecorded(rows, 'ended');
  await batch.end();
  await expect(batch.store()).rejects.toThrow('the attempt has ended');
  await db.store(rows);
  expect(await db.read("SELECT count() AS events FROM events WHERE workspace_id = 'ended'")).toEqual([{ events: 1 }]);
});

test('an end that is repeated counts from when it was recorded, and can be given up', async () => {
  const calls: { endedAtMs: number; signal: AbortSignal | undefined }[] = [];
  const store = new StagedStore({
    ...{ client: db.writerClient, groupId: 'repeated', statementTimeoutMs: 60_000 },
    ownership: { queryIdPrefix: () => 'test' },
    carried: {
      async endStatements(_prefix, endedAtMs, signal) {
        calls.push({ endedAtMs, signal });
        if (calls.length === 1) throw new Error('a server does not answer');
      },
    },
  });
  const batch = store.open(batchOf([]), EPOCH, () => undefined);
  const { signal } = new AbortController();
  const began = performance.now();
  await expect(batch.end(signal)).rejects.toThrow('a server does not answer');
  await batch.end(signal);
  expect(calls).toEqual([calls[1], { endedAtMs: expect.any(Number), signal }]);
  expect(calls[0]?.endedAtMs).toBeGreaterThan(began);
});

test('a statement that is running when its attempt ends stores nothing', async () => {
  const rows = batchOf(Array.from({ length: 50 }, () => eventRow({ workspace_id: 'running' })));
  const prefix = `test/${randomUUID()}`;
  const { batch, sent } = openRecorded(rows, 'running');
  await batch.store();
  await db.client.command({ query: "ALTER TABLE events DELETE WHERE workspace_id = 'running'" });
  const request = sent.find((one) => nameOf(one) === 'store-events');
  if (!request) throw new Error('nothing was sent');
  const slowly = { ...request.clickhouse_settings, function_sleep_max_microseconds_per_block: '60000000' };
  const query = request.query.replace('\n)\nWHERE (', '\n)\nWHERE sleepEachRow(1) = 0 AND (');
  const running = formSender(db.writerClient)({
    ...request,
    query,
    query_id: `${prefix}/late`,
    clickhouse_settings: slowly,
  });
  const refused = expect(running).rejects.toMatchObject({ type: 'QUERY_WAS_CANCELLED' });
  const isRunning = `SELECT 1 FROM system.processes WHERE startsWith(query_id, '${prefix}')`;
  await eventually(async () => (await db.read(isRunning)).length).toBe(1);
  await db.writerClient.command({ query: STATEMENTS['end-own-statements'].sql, query_params: { prefix } });
  await refused;
  expect(await db.read("SELECT count() AS events FROM events WHERE workspace_id = 'running'")).toEqual([{ events: 0 }]);
});

test('no statement names a session or a temporary table', async () => {
  const { batch, sent } = openRecorded(rowsOfEachKind('no session'), 'no session');
  await batch.store();
  await batch.end();
  expect(sent.length).toBeGreaterThan(20);
  for (const request of sent) {
    expect(request.query).not.toMatch(/TEMPORARY/);
    expect(Object.keys({ ...request, ...request.clickhouse_settings }).filter((name) => /session/.test(name))).toEqual(
      [],
    );
  }
});

test('a form that breaks off stores nothing', async () => {
  const address = new URL(inject('clickhouseUrl'));
  const lines = ['{"event":"a"}\n', '{"event":"b"}\n'];
  const form = `--b\r\nContent-Disposition: form-data; name="sent"; filename="sent"\r\n\r\n${lines.join('')}\r\n--b--\r\n`;
  const { database } = db;
  const send = async (workspace: string, bytes: number) => {
    const query = `INSERT INTO events (workspace_id, event, uuid) SELECT '${workspace}', event, generateUUIDv4() FROM sent`;
    const parameters = {
      ...PINNED_SETTINGS,
      database,
      query,
      sent_format: 'JSONEachRow',
      sent_structure: 'event String',
    };
    const head = [
      `POST /?${new URLSearchParams(parameters)} HTTP/1.1`,
      ...['Host: clickhouse', 'Content-Type: multipart/form-data; boundary=b', `Content-Length: ${form.length}`],
    ];
    const socket = connect(Number(address.port), address.hostname);
    socket.end(`${head.join('\r\n')}\r\n\r\n${form.slice(0, bytes)}`);
    socket.resume();
    await new Promise((resolve) => socket.once('close', resolve));
  };
  await send('whole form', form.length);
  // At the end of a row, of all rows, and before the last boundary ends.
  const ends = [form.indexOf(lines[1] as string), form.indexOf('\r\n--b--'), form.length - 4];
  for (const end of ends) await send('broken form', end);
  const found = "SELECT workspace_id, count() AS events FROM events WHERE workspace_id LIKE '% form' GROUP BY ALL";
  expect(await db.read(found)).toEqual([{ workspace_id: 'whole form', events: 2 }]);
});

test('every byte arrives as it was sent, in each column', async () => {
  const bytes = Array.from({ length: 256 }, (_, code) => String.fromCharCode(code)).join('');
  const odd = `${bytes}\u2028\u2029\ufeff\uffff😀\r\n--b--\r\n$\${x}{p:String}%00\\'`;
  const user = odd.replaceAll('\0', '');
  const row = eventRow({ workspace_id: `odd ${odd}`, event: odd, user_id: user, anonymous_id: odd, group_id: odd });
  const visitor = eventRow({ workspace_id: `odd ${odd}`, anonymous_id: odd });
  const change = changeRow({
    workspace_id: `odd ${odd}`,
    id: user,
    operation: 'set',
    property: odd,
    value: JSON.stringify(odd),
  });
  // Again, so that the stored ones come back as originals.
  for (let time = 0; time < 2; time += 1) {
    const gone = changeRow({ workspace_id: `odd ${odd}`, id: visitorOf(`${odd}${time}`), operation: 'delete' });
    await db.store(batchOf([row, row, visitor], [change, gone]));
  }
  const found =
    "SELECT event, user_id, anonymous_id, group_id FROM events WHERE workspace_id LIKE 'odd %' ORDER BY user_id";
  expect(await db.read(found)).toEqual([
    { event: 'e', user_id: '', anonymous_id: odd, group_id: '' },
    { event: odd, user_id: user, anonymous_id: odd, group_id: odd },
  ]);
  const properties =
    "SELECT property, max(register).value AS value FROM entity_properties WHERE workspace_id LIKE 'odd %' GROUP BY ALL";
  expect(await db.read(properties)).toEqual([{ property: odd, value: JSON.stringify(odd) }]);
});

test('a table without rows has its columns', async () => {
  const tables = new CarriedTables(formSender(db.writerClient), 'test', 60_000);
  await tables.run(STATEMENTS['stage-events']);
  await tables.run(STATEMENTS['stage-changes']);
  expect(await tables.load(STATEMENTS['load-events'], [])).toBe(0);
  expect(await tables.wroteRows(STATEMENTS['find-repeats'])).toBe(false);
  await tables.run(STATEMENTS['find-deletions']);
  for (const name of ['drop-deleted-events', 'drop-hidden-originals', 'drop-stored-repeats'] as const)
    await tables.run(STATEMENTS[name]);
  expect(await tables.read(STATEMENTS['count-deleted-rows'])).toEqual([{ events: 0, changes: 0 }]);
  expect(await tables.read(STATEMENTS['inspect-events'], { server: '' })).toMatchObject([{ events: 0, keys: 0 }]);
});

test('each statement of a batch that stores rows can be fenced', () => {
  for (const name of Object.keys(STATEMENTS)) {
    const statement: Statement = STATEMENTS[name as keyof typeof STATEMENTS];
    if (statement.step || name === 'record-ended-batch' || !/^INSERT INTO/m.test(statement.sql)) continue;
    expect(fenced(statement), name).toContain('ended_batches');
  }
});

test('at a replica that is not recorded nothing is stored, and the writer is not fenced', async () => {
  const record = (isGone: boolean) =>
    db.client.command({
      query: `INSERT INTO writer_replicas (replica, is_gone, changed_at)
        SELECT replica, ${isGone}, changed_at + INTERVAL 1 SECOND FROM writer_replicas FINAL`,
    });
  const rows = batchOf([eventRow({ workspace_id: randomUUID(), user_id: 'u' })], []);
  const before = await stored();
  await record(true);
  const error = await openRecorded(rows, 'replicas')
    .batch.store()
    .then(
      () => undefined,
      (reason: unknown) => reason,
    );
  expect(String(error)).toContain('the replica is not recorded yet');
  expect(error).not.toBeInstanceOf(Fenced);
  expect(await stored()).toEqual(before);
  await record(false);
  expect(await openRecorded(rows, 'replicas').batch.store()).toMatchObject({ rows: 1 });
});
