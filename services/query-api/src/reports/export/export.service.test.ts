import { randomUUID } from 'node:crypto';
import { PINNED_SETTINGS } from '@sluice/shared/clickhouse/settings';
import { eventually } from '@sluice/shared/testing/eventually';
import { parseJson } from '@sluice/shared/text/json';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { EVENT_COLUMNS } from '../../records/events/event-columns.ts';
import { LOCAL_TABLES } from '../../store/store.ts';
import { metric } from '../../testing/load.ts';
import { anEvent, eachIdentifier, type QueryService, startQuery, type TestEvent } from '../../testing/query-service.ts';
import { expectedPersonRecord, expectedRecord, inOrder } from '../../testing/reference.ts';
import { parseExportRequest } from './export-parameters.ts';
import { exportQuery } from './export-query.ts';

const START = Date.UTC(2026, 0, 1);
const HOSTILE = ['plain', 'a "quoted", comma', 'line\nfeed\r\n', "O'Brien \\ / \u2028 \u0000", '=1+1', 'ä🙂', 'null'];
const HOSTILE_JSON = [
  '{}',
  '{"a":1,"big":12345678901234567890,"e":1e300}',
  '{"s":"\\ud800 \\u0000 \\n","k\\"ey":[1,null,{"x":"y"}],"/":"/"}',
  '{"text":"complete\\",\\"events"}',
];

let service: QueryService;
const events: TestEvent[] = [];

beforeAll(async () => {
  service = await startQuery(inject('clickhouseUrl'));
  for (let index = 0; index < 500; index += 1) {
    const text = HOSTILE[index % HOSTILE.length] as string;
    events.push(
      anEvent({
        // Many events share a time; then the uuid decides.
        timestampMs: START + ((index * 37) % 50) * 86_400_000,
        receivedAtUs: START * 1_000 + index * 1_001,
        event: text,
        properties: HOSTILE_JSON[index % HOSTILE_JSON.length] as string,
        traits: index % 3 === 0 ? '{"t":true}' : '{}',
        ...(index % 2 === 0 ? eachIdentifier(text) : {}),
      }),
    );
  }
  // In several parts.
  for (let at = 0; at < events.length; at += 50) await service.store('a', events.slice(at, at + 50));
  await service.store('b', [anEvent({ timestampMs: START })]);
  await storeMany();
});
afterAll(() => service.stop());

async function exported(query: string, headers: Readonly<Record<string, string>> = {}) {
  const url = `/events/export?startDate=2026-01-01&${query}`;
  return await service.app.inject({ url, headers: { authorization: 'Bearer a', ...headers } });
}

async function records(query: string): Promise<{ lines: readonly unknown[]; trailer: unknown }> {
  const { body } = await exported(query);
  const lines = body.split('\n').map((line) => (line === '' ? undefined : parseJson(line)));
  expect(lines.pop()).toBeUndefined();
  const trailer = lines.pop();
  return { lines, trailer };
}

test.each(['ASC', 'DESC'] as const)(
  'an export has the records of all events in order, and says that it is complete: %s',
  async (direction) => {
    const { lines, trailer } = await records(`orderByDirection=${direction}`);
    const order = { field: 'timestamp', direction } as const;
    expect(lines).toEqual(inOrder(events, order).map(expectedPersonRecord));
    const raw = await records(`orderByDirection=${direction}&identity=raw`);
    expect(raw.lines).toEqual(inOrder(events, order).map(expectedRecord));
    expect(trailer).toEqual({ complete: true, events: events.length });
  },
);

test('an export continues behind each of its records, and its last line counts its own', async () => {
  const { lines } = await records('');
  for (const at of [0, 1, 9, 250, 498, 499]) {
    const { timestamp, uuid } = lines[at] as { timestamp: string; uuid: string };
    const rest = await records(`after=${timestamp},${uuid.toUpperCase()}`);
    expect(rest.lines).toEqual(lines.slice(at + 1));
    expect(rest.trailer).toEqual({ complete: true, events: lines.length - at - 1 });
  }
});

test('filters and dates choose the events', async () => {
  const chosen = (event: TestEvent) => event.event === 'plain' && event.timestampMs <= Date.UTC(2026, 0, 20);
  const { lines } = await records('event=plain&endDate=2026-01-20T00:00:00Z');
  expect(lines).toHaveLength(events.filter(chosen).length);
  expect((await records('properties.a=1')).lines).toHaveLength(events.filter((_, index) => index % 4 === 1).length);
  expect((await records('event=nothing')).trailer).toEqual({ complete: true, events: 0 });
});

test('events of a deleted user are left out at once', async () => {
  const uuid = randomUUID();
  await service.store('c', [anEvent({ timestampMs: START, userId: 'gone', uuid }), anEvent({ timestampMs: START })]);
  const lines = async () => {
    const { body } = await exported('', { authorization: 'Bearer c' });
    return body.trim().split('\n');
  };
  expect(await lines()).toHaveLength(3);
  await service.insert('pending_deletions', [
    { workspace_id: 'c', user_id: 'gone', version: START * 1_000_000, stored_at: START },
  ]);
  await eventually(async () => (await lines()).join()).not.toContain(uuid);
  expect(await lines()).toHaveLength(2);
});

test('CSV has a column for each field, and a last line', async () => {
  const response = await exported('', { accept: 'text/html, text/csv;q=0.9' });
  expect(response.headers['content-type']).toBe('text/csv');
  const rows = parseCsv(response.body);
  expect(rows.pop()).toEqual(['#complete', String(events.length)]);
  const names = rows.shift() as string[];
  const expected = inOrder(events, { field: 'timestamp', direction: 'ASC' }).map(expectedPersonRecord);
  expect(rows.map((row) => Object.fromEntries(row.map((value, column) => [names[column], value])))).toEqual(
    expected.map((record) => ({
      ...Object.fromEntries(Object.entries(record).map(([name, value]) => [name, value ?? ''])),
      ...Object.fromEntries(['properties', 'context', 'traits'].map((name) => [name, expect.any(String)])),
    })),
  );
  expect(parseJson((rows[0] as string[])[names.indexOf('properties')] as string)).toEqual(expected[0]?.['properties']);
});

/** The columns that another reader finds in a Parquet file, by ClickHouse's types. */
const PARQUET_COLUMNS = [
  ...Object.entries(EVENT_COLUMNS).map(([name, { type }]) => {
    if (type === 'milliseconds' || type === 'microseconds') return `${name} DateTime64(3, 'UTC')`;
    return `${name} ${type === 'identifier' ? 'Nullable(String)' : 'String'}`;
  }),
  'linkedUserId Nullable(String)',
].join(', ');

test('Parquet has the same columns, with times and nulls', async () => {
  const { rawPayload, headers } = await exported('format=parquet');
  expect(headers['content-type']).toBe('application/vnd.apache.parquet');
  const url = new URL(inject('clickhouseUrl'));
  url.search = String(
    new URLSearchParams({
      ...PINNED_SETTINGS,
      query: 'SELECT * FROM file_sent FORMAT JSONEachRow',
      date_time_output_format: 'iso',
      file_sent_format: 'Parquet',
      file_sent_structure: PARQUET_COLUMNS,
    }),
  );
  const form = new FormData();
  form.append('file_sent', new Blob([new Uint8Array(rawPayload)]));
  const response = await fetch(url, { method: 'POST', body: form });
  const text = await response.text();
  expect(response.status, text).toBe(200);
  const rows = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const documents = ['properties', 'context', 'traits'];
  expect(
    rows.map((row) => ({ ...row, ...Object.fromEntries(documents.map((name) => [name, parseJson(row[name])])) })),
  ).toEqual(inOrder(events, { field: 'timestamp', direction: 'ASC' }).map(expectedPersonRecord));
});

/** More events than one statement looks up visitors for, many of one time, a third of them of linked visitors, a third of strangers. */
const MANY = 120_000;

async function storeMany(): Promise<void> {
  const visitor = "concat('v', toString(number % 3000))";
  await service.clickHouse.command({
    query: `INSERT INTO events (workspace_id, timestamp, uuid, event, user_id, anonymous_id, properties, received_at)
      SELECT 'd', fromUnixTimestamp64Milli({start:Int64} + intDiv(number, 700) * 1000), generateUUIDv4(number), 'e',
        if(number % 3 = 0, concat('u', toString(number % 100)), ''), ${visitor}, '{"a":1}', now64(6)
      FROM numbers({rows:UInt64})`,
    query_params: { start: START, rows: MANY },
  });
  await service.clickHouse.command({
    query: `INSERT INTO identity_links SELECT 'd', ${visitor}, concat('owner of ', ${visitor}), 1, 0 FROM numbers(3000) WHERE number % 3 = 1`,
  });
}

interface ManyRecord {
  readonly uuid: string;
  readonly timestamp: string;
  readonly userId: string | null;
  readonly anonymousId: string;
  readonly linkedUserId: string | null;
}

const personOf = ({ userId, anonymousId }: ManyRecord) =>
  userId ?? (Number(anonymousId.slice(1)) % 3 === 1 ? `owner of ${anonymousId}` : null);

test('an export of many events says whose each is, each once and in order, and goes on in the middle', async () => {
  const authorization = 'Bearer d';
  const recordsOf = async (query: string) => {
    const { body } = await exported(query, { authorization });
    return body
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line)) as readonly ManyRecord[];
  };
  const all = await recordsOf('');
  expect(all.at(-1)).toEqual({ complete: true, events: MANY });
  const records = all.slice(0, -1);
  expect(records.filter((record) => record.linkedUserId !== personOf(record))).toEqual([]);
  expect(new Set(records.map(({ uuid }) => uuid)).size).toBe(MANY);
  const keys = records.map(({ timestamp, uuid }) => `${timestamp} ${uuid}`);
  expect(keys).toEqual(keys.toSorted());
  expect((await recordsOf('orderByDirection=DESC')).slice(0, -1)).toEqual(records.toReversed());
  const [at = 0] = [70_001];
  const { timestamp, uuid } = records[at] as ManyRecord;
  expect((await recordsOf(`after=${timestamp},${uuid}`)).slice(0, -1)).toEqual(records.slice(at + 1));
  const ofOne = records.filter((record) => record.linkedUserId === 'owner of v1');
  expect((await recordsOf('userId=owner%20of%20v1')).slice(0, -1)).toEqual(ofOne);
  expect(ofOne.length).toBeGreaterThan(0);
  const rows = parseCsv((await exported('format=csv', { authorization })).body);
  expect(rows.at(-1)).toEqual(['#complete', String(MANY)]);
  const names = rows[0] as string[];
  expect(names.filter((name) => name === 'linkedUserId')).toHaveLength(1);
  const column = names.indexOf('linkedUserId');
  expect(rows.slice(1, -1).map((row) => row[column] || null)).toEqual(records.map(({ linkedUserId }) => linkedUserId));
});

test.each(['ndjson', 'csv'])(
  'whose the events of a short time are is looked up for these alone: %s',
  async (format) => {
    const at = (second: number) => new Date(START + second * 1_000).toISOString();
    const request = parseExportRequest({ startDate: [at(80)], endDate: [at(80)], format: [format] }, undefined);
    const tables = LOCAL_TABLES.withPersons().withLinks();
    const { sql, params } = exportQuery(tables, request, undefined, { isFirst: true });
    const result = await service.clickHouse.exec({
      query: sql,
      query_params: { ...params, workspace: 'd' },
      clickhouse_settings: { wait_end_of_query: 1, prefer_column_name_to_alias: 1 },
    });
    for await (const chunk of result.stream) expect(chunk.length).toBeGreaterThan(0);
    const summary = JSON.parse(String(result.response_headers['x-clickhouse-summary'])) as { read_rows: string };
    expect(Number(summary.read_rows)).toBeLessThan(MANY / 10);
  },
);

test('HEAD is answered without an export', async () => {
  const exports = () => metric(service, 'sluice_query_wait_seconds_count{pool="exports",outcome="admitted"}');
  const before = await exports();
  const response = await service.app.inject({
    method: 'HEAD',
    url: '/events/export?startDate=2026-01-01',
    headers: { authorization: 'Bearer a' },
  });
  expect([response.statusCode, response.headers['content-type']]).toEqual([200, 'application/x-ndjson']);
  expect(await exports()).toBe(before);
});

test.each([
  ['format=xml', 'format'],
  ['after=yesterday', 'after'],
  ['after=2026-01-01T00:00:00Z,nobody', 'after'],
  ['limit=3', 'limit'],
  ['endDate=2025-01-01', 'startDate'],
])('%s is refused', async (query, path) => {
  const response = await exported(query);
  expect(response.statusCode).toBe(400);
  expect(response.json().errors).toEqual([expect.objectContaining({ path })]);
});

test('startDate is required', async () => {
  const response = await service.get('/events/export');
  expect(response.body.errors).toEqual([expect.objectContaining({ path: 'startDate', code: 'required' })]);
});

/** RFC 4180, with line feeds. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\n]*))(,|\n)/g)) {
    row.push(quoted === undefined ? (plain as string) : quoted.replaceAll('""', '"'));
    if (end === '\n') {
      rows.push(row);
      row = [];
    }
  }
  return rows;
}
